// dpar train.
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
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

struct TrainArguments {
  std::string dataset;
  double epsilon = 0;
  std::optional<double> delta;
  std::string method = "auto";
  bool no_watch = false;
  bool dry_run = false;
};

std::string PlanText(const v1::Plan& plan) {
  return absl::StrCat(MethodLabel(plan.method()), ", ", plan.steps(), " steps, noise multiplier ",
                      FormatNumber(plan.noise_multiplier()), ", epsilon ", FormatNumber(plan.epsilon()), ", delta ",
                      FormatNumber(plan.delta()));
}

// What the job would be, and what it would cost.
absl::StatusOr<int> PrintDryRun(Session& session, Connection& connection, const v1::Job& job,
                                const TrainArguments& arguments) {
  const v1::Plan& plan = job.plan();
  std::optional<v1::Budget> budget;
  const auto found = connection.GetBudget(absl::StrCat(job.spec().dataset(), "/budget"));
  if (found.ok()) {
    budget = *found;
  } else if (!absl::IsNotFound(found.status())) {
    return found.status();
  }
  if (session.json()) {
    Json json = {{"dry_run", true}, {"dataset", job.spec().dataset()}, {"plan", PlanJson(plan)}};
    if (budget.has_value()) {
      json["budget"] = BudgetJson(*budget);
    }
    session.PrintJson(json);
    return kDone;
  }
  session.out() << "dataset           " << job.spec().dataset() << "\n"
                << "method            " << MethodLabel(plan.method()) << "\n"
                << "steps             " << plan.steps() << "\n"
                << "noise multiplier  " << FormatNumber(plan.noise_multiplier()) << "\n"
                << "guarantee         epsilon " << FormatNumber(plan.epsilon()) << " at delta "
                << FormatNumber(plan.delta()) << "\n";
  if (budget.has_value()) {
    const int64_t cap = budget->cap_units();
    const bool by_units = plan.left_units() >= 0;
    session.out() << "price             " << FormatCount(plan.price_units()) << " units, "
                  << FormatPercent(plan.price_units(), cap) << " of the cap\n"
                  << "left afterwards   "
                  << (by_units ? absl::StrCat(FormatCount(plan.left_units()), " units, ",
                                              FormatPercent(plan.left_units(), cap), " of the cap")
                               : "nothing: it is admitted as the only job, by its own epsilon")
                  << "\n";
  } else {
    session.out() << "price             none: the data is public\n";
  }
  session.out() << "nothing was queued or spent\n"
                << "next              dpar train " << arguments.dataset << " --epsilon "
                << FormatNumber(arguments.epsilon) << "\n";
  return kDone;
}

void PrintQueued(Session& session, const v1::Job& job) {
  if (session.json()) {
    session.PrintJson({{"job", JobJson(job)}, {"state", StateLabel(job.state())}, {"terminal", false}});
    return;
  }
  session.out() << "job      " << job.name() << "\n"
                << "state    " << StateLabel(job.state()) << "\n"
                << "epsilon  " << FormatNumber(job.plan().epsilon()) << "\n"
                << "delta    " << FormatNumber(job.plan().delta()) << "\n"
                << "next     dpar watch " << IdOf(job.name()) << "\n";
}

absl::StatusOr<v1::CreateJobRequest> MakeRequest(Session& session, const TrainArguments& arguments) {
  v1::CreateJobRequest request;
  DPAR_ASSIGN_OR_RETURN(const v1::Method method, ParseMethod(arguments.method));
  DPAR_ASSIGN_OR_RETURN(const std::string dataset, session.Resolve("datasets", arguments.dataset));
  request.set_parent(TenantOf(dataset));
  request.mutable_spec()->set_dataset(dataset);
  request.mutable_spec()->set_epsilon(arguments.epsilon);
  request.mutable_spec()->set_method(method);
  if (arguments.delta.has_value()) {
    request.mutable_spec()->set_delta(*arguments.delta);
  }
  request.set_validate_only(arguments.dry_run);
  request.set_request_id(NewRequestId(session.random()));
  return request;
}

absl::StatusOr<int> RunTrain(Session& session, const TrainArguments& arguments) {
  session.error_context().dataset = arguments.dataset;
  if (arguments.no_watch || arguments.dry_run) {
    DPAR_ASSIGN_OR_RETURN(const v1::CreateJobRequest request, MakeRequest(session, arguments));
    DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
    DPAR_ASSIGN_OR_RETURN(const v1::Job job, connection->CreateJob(request));
    if (arguments.dry_run) {
      return PrintDryRun(session, *connection, job, arguments);
    }
    PrintQueued(session, job);
    return kDone;
  }
  session.StreamJson();
  Cancellation cancellation;
  const Interrupt interrupt([&cancellation] { cancellation.Cancel(); });
  DPAR_ASSIGN_OR_RETURN(const v1::CreateJobRequest request, MakeRequest(session, arguments));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  if (cancellation.cancelled()) {
    session.err() << "interrupted; nothing was queued\n";
    return kInterrupted;
  }
  DPAR_ASSIGN_OR_RETURN(const v1::Job job, connection->CreateJob(request));
  session.err() << IdOf(job.name()) << ": " << PlanText(job.plan()) << std::endl;
  if (session.json()) {
    PrintQueued(session, job);
  }
  return FollowJob(session, job.name(), cancellation);
}

}  // namespace

void AddTrainCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "Train a private model, and watch it");
  command->group(kTrainingGroup);
  command->add_option("DATASET", arguments->dataset, "Id or full name of the dataset")->required();
  command->add_option("--epsilon", arguments->epsilon, "Privacy loss bound of this job, 0.001 to 100")->required();
  command->add_option("--delta", arguments->delta, "Probability bound of this job (default: the delta of the cap)");
  command->add_option("--method", arguments->method, "auto, features, dpar-em0, dpar-em1, dpar-gm, gap or sage")
      ->capture_default_str();
  command->add_flag("--no-watch", arguments->no_watch, "Queue the job and return");
  command->add_flag("--dry-run", arguments->dry_run, "Show the plan and its price; spend nothing");
  command->footer(Examples("  dpar train demo --epsilon 1 --dry-run\n  dpar train demo --epsilon 1"));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunTrain(s, *arguments); }; });
}

}  // namespace dpar
