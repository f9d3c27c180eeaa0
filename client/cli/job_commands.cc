#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/interrupt.h"
#include "client/cli/labels.h"
#include "client/cli/plan_text.h"
#include "client/cli/watching.h"
#include "client/sdk/names.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

absl::StatusOr<int> RunWatch(Session& session, const std::string& text) {
  session.StreamJson();
  session.error_context().job = text;
  Cancellation cancellation;
  const Interrupt interrupt([&cancellation] { cancellation.Cancel(); });
  DPAR_ASSIGN_OR_RETURN(const std::string job, session.Resolve("jobs", text));
  return FollowJob(session, job, cancellation);
}

absl::StatusOr<int> RunCancel(Session& session, const std::string& text) {
  session.error_context().job = text;
  DPAR_ASSIGN_OR_RETURN(const std::string name, session.Resolve("jobs", text));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  v1::CancelJobRequest request;
  request.set_name(name);
  request.set_request_id(NewRequestId(session.random()));
  DPAR_ASSIGN_OR_RETURN(const v1::Job job, connection->CancelJob(request));
  if (session.json()) {
    session.PrintJson({{"job", ResourceJson(job)}});
    return kDone;
  }
  if (job.state() == v1::Job::CANCELLED) {
    session.out() << job.name() << " is cancelled; "
                  << (job.failure().empty() ? "what it held of the budget was given back" : job.failure()) << "\n";
  } else {
    session.out() << job.name()
                  << " is being stopped; after a start, a budget gives a price back 3 times and then posts it\n"
                  << "next: dpar job watch " << IdOf(job.name()) << "\n";
  }
  return kDone;
}

absl::StatusOr<int> RunJobs(Session& session, const std::string& tenant_option) {
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, session.TenantOrOwn(tenant_option));
  DPAR_ASSIGN_OR_RETURN(const auto jobs, connection->ListJobs(tenant));
  if (session.json()) {
    session.PrintJson({{"tenant", tenant}, {"jobs", ListJson(jobs)}});
    return kDone;
  }
  if (jobs.empty()) {
    session.out() << "no jobs yet\nnext: dpar train DATASET --epsilon 1\n";
    return kDone;
  }
  // A dataset's id is cut before a job's, which the next command needs whole.
  Table table({"JOB", "DATASET", "METHOD", "EPSILON", "STATE", "AGE"}, {1, 0});
  for (const v1::Job& job : jobs) {
    table.Add({IdOf(job.name()), IdOf(job.spec().dataset()), MethodLabel(job.plan().method()),
               job.plan().non_private() ? "none" : FormatNumberUp(job.plan().epsilon()), StateLabel(job.state()),
               FormatAge(absl::Now() - FromProto(job.create_time()))});
  }
  session.out() << table.Render(session.TableWidth());
  return kDone;
}

std::string ProgressText(const v1::JobProgress& progress) {
  return progress.total() > 0 ? absl::StrCat(progress.stage(), ", ", FormatCount(progress.completed()), " of ",
                                             FormatCount(progress.total()))
                              : progress.stage();
}

void PrintJob(Session& session, const v1::Job& job) {
  const auto line = [&session](const std::string& heading, const std::string& text) {
    session.out() << heading << std::string(18 - heading.size(), ' ') << text << "\n";
  };
  line("job", job.name());
  line("dataset", job.spec().dataset());
  line("state", StateLabel(job.state()));
  if (job.has_progress() && job.state() == v1::Job::RUNNING) {
    line("progress", ProgressText(job.progress()));
  }
  if (!job.failure().empty()) {
    line("why", job.failure());
  }
  for (const auto& [heading, text] : PlanLines(job.plan())) {
    line(heading, text);
  }
  line("created", FormatTime(job.create_time()));
  if (job.has_start_time()) {
    line("started", FormatTime(job.start_time()));
  }
  if (job.has_end_time()) {
    line("ended", FormatTime(job.end_time()));
  }
  if (job.attempts() > 1) {
    line("attempts", absl::StrCat(job.attempts()));
  }
  if (job.has_evaluation()) {
    line("accuracy", EvaluationText(job.plan(), job.evaluation()));
  }
  const std::string id = IdOf(job.name());
  if (job.state() == v1::Job::SUCCEEDED) {
    line("next", absl::StrCat("dpar job download ", id, " -o ", id));
  } else if (job.state() == v1::Job::QUEUED || job.state() == v1::Job::RUNNING) {
    line("next", absl::StrCat("dpar job watch ", id));
  }
}

absl::StatusOr<int> RunShow(Session& session, const std::string& text) {
  session.error_context().job = text;
  DPAR_ASSIGN_OR_RETURN(const std::string name, session.Resolve("jobs", text));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const v1::Job job, connection->GetJob(name));
  if (session.json()) {
    session.PrintJson({{"job", ResourceJson(job)}});
  } else {
    PrintJob(session, job);
  }
  return kDone;
}

CLI::App* AddJobCommand(CLI::App& parent, const std::string& name, const std::string& words,
                        const std::string& description, absl::StatusOr<int> (*run)(Session&, const std::string&),
                        Command& chosen) {
  const auto job = std::make_shared<std::string>();
  CLI::App* command = parent.add_subcommand(name, description);
  command->add_option("JOB", *job, "Id or full name of the job")->required();
  command->footer(Examples("  dpar " + words + " JOB"));
  command->callback([job, run, &chosen] { chosen = [job, run](Session& s) { return run(s, *job); }; });
  return command;
}

CLI::App* AddList(CLI::App& parent, const std::string& name, const std::string& words, Command& chosen) {
  const auto tenant = std::make_shared<std::string>();
  CLI::App* command = parent.add_subcommand(name, "List the jobs, newest first");
  command->add_option("--tenant", *tenant, "Tenant, for operators (default: the token's own)");
  command->footer(Examples("  dpar " + words));
  command->callback([tenant, &chosen] { chosen = [tenant](Session& s) { return RunJobs(s, *tenant); }; });
  return command;
}

constexpr const char* kWatchText = "Follow a job to its end; Ctrl-C leaves it running";
constexpr const char* kCancelText = "Stop a job; its price is given back (3 times for jobs that ran)";

}  // namespace

void AddJobCommands(CLI::App& app, Command& chosen) {
  CLI::App* group = AddCommandGroup(app, "job", "list, show, watch, cancel or download jobs", kTrainingGroup);
  AddList(*group, "list", "job list", chosen);
  AddJobCommand(*group, "show", "job show", "Show one job: plan, price, state", RunShow, chosen);
  AddJobCommand(*group, "watch", "job watch", kWatchText, RunWatch, chosen);
  AddJobCommand(*group, "cancel", "job cancel", kCancelText, RunCancel, chosen);
  AddDownload(*group, "download", "job download", chosen);
}

void AddJobShortForms(CLI::App& app, Command& chosen) {
  AddList(app, "jobs", "jobs", chosen)->group(kShortGroup);
  AddJobCommand(app, "watch", "watch", kWatchText, RunWatch, chosen)->group(kShortGroup);
  AddJobCommand(app, "cancel", "cancel", kCancelText, RunCancel, chosen)->group(kShortGroup);
  AddDownload(app, "download", "download", chosen)->group(kShortGroup);
}

}  // namespace dpar
