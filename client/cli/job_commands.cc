// dpar watch, dpar cancel, dpar jobs.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/interrupt.h"
#include "client/cli/labels.h"
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
    session.PrintJson({{"job", JobJson(job)}});
    return kDone;
  }
  if (job.state() == v1::Job::CANCELLED) {
    session.out() << job.name() << " is cancelled; what it held of the budget was given back\n";
  } else {
    session.out() << job.name() << " is being stopped\nnext: dpar watch " << IdOf(job.name()) << "\n";
  }
  return kDone;
}

absl::StatusOr<int> RunJobs(Session& session, const std::string& tenant_option) {
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, session.TenantOrOwn(tenant_option));
  DPAR_ASSIGN_OR_RETURN(const auto jobs, connection->ListJobs(tenant));
  if (session.json()) {
    Json list = Json::array();
    for (const v1::Job& job : jobs) {
      list.push_back(JobJson(job));
    }
    session.PrintJson({{"tenant", tenant}, {"jobs", list}});
    return kDone;
  }
  if (jobs.empty()) {
    session.out() << "no jobs yet\nnext: dpar train DATASET --epsilon 1\n";
    return kDone;
  }
  // A dataset's id gives way before a job's, which the next command needs whole.
  Table table({"JOB", "DATASET", "METHOD", "EPSILON", "STATE", "AGE"}, {1, 0});
  for (const v1::Job& job : jobs) {
    table.Add({IdOf(job.name()), IdOf(job.spec().dataset()), MethodLabel(job.plan().method()),
               job.plan().non_private() ? "none" : FormatNumberUp(job.plan().epsilon()), StateLabel(job.state()),
               FormatAge(absl::Now() - FromProto(job.create_time()))});
  }
  session.out() << table.Render(session.TableWidth());
  return kDone;
}

}  // namespace

void AddJobCommands(CLI::App& app, Command& chosen) {
  const auto watched = std::make_shared<std::string>();
  CLI::App* watch = app.add_subcommand("watch", "Follow a job to its end; Ctrl-C leaves it running");
  watch->group(kTrainingGroup);
  watch->add_option("JOB", *watched, "Id or full name of the job")->required();
  watch->footer(Examples("  dpar watch JOB"));
  watch->callback([watched, &chosen] { chosen = [watched](Session& s) { return RunWatch(s, *watched); }; });

  const auto cancelled = std::make_shared<std::string>();
  CLI::App* cancel = app.add_subcommand("cancel", "Stop a job that has not ended; its price is given back");
  cancel->group(kTrainingGroup);
  cancel->add_option("JOB", *cancelled, "Id or full name of the job")->required();
  cancel->footer(Examples("  dpar cancel JOB"));
  cancel->callback([cancelled, &chosen] { chosen = [cancelled](Session& s) { return RunCancel(s, *cancelled); }; });

  const auto tenant = std::make_shared<std::string>();
  CLI::App* jobs = app.add_subcommand("jobs", "List the jobs, newest first");
  jobs->group(kTrainingGroup);
  jobs->add_option("--tenant", *tenant, "Tenant, for operators (default: the token's own)");
  jobs->footer(Examples("  dpar jobs"));
  jobs->callback([tenant, &chosen] { chosen = [tenant](Session& s) { return RunJobs(s, *tenant); }; });
}

}  // namespace dpar
