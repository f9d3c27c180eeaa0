#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/mechanism.h"
#include "client/cli/typed_flags.h"
#include "core/error.h"
#include "core/message_json.h"
#include "core/privacy/accountant.h"
#include "core/privacy/event.h"
#include "core/privacy/published.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

// The published theorems divide by the rate.
absl::Status CheckPipelineRate(absl::string_view flag, double value) { return ValidatePositive(flag, value, 1); }

absl::StatusOr<ApprMethod> ReadMethod(const Flags& flags) {
  const std::string method = Typed(flags, "method");
  if (method == "dpar-em0") {
    return ApprMethod::kEm0;
  }
  if (method == "dpar-em1") {
    return ApprMethod::kEm1;
  }
  if (method == "dpar-gm") {
    return ApprMethod::kGm;
  }
  return InvalidField("method", absl::StrCat("--method is one of dpar-em0, dpar-em1, dpar-gm; not '", method, "'"));
}

absl::Status CheckValueNoise(ApprMethod method, const Flags& flags) {
  const bool given = IsGiven(flags, "value-noise");
  if (method == ApprMethod::kEm1 && !given) {
    return InvalidField("value-noise", "--method dpar-em1 takes --value-noise; it is missing");
  }
  if (method != ApprMethod::kEm1 && given) {
    return InvalidField("value-noise", absl::StrCat("--value-noise is for --method dpar-em1; --method ",
                                                    Typed(flags, "method"), " does not take it"));
  }
  return absl::OkStatus();
}

absl::StatusOr<DparPipeline> ReadPipeline(const Flags& flags) {
  DparPipeline pipeline;
  DPAR_ASSIGN_OR_RETURN(pipeline.method, ReadMethod(flags));
  DPAR_RETURN_IF_ERROR(CheckValueNoise(pipeline.method, flags));
  DPAR_ASSIGN_OR_RETURN(pipeline.seeds, ReadInteger(flags, "seeds", 1, kMaxSeeds));
  DPAR_ASSIGN_OR_RETURN(pipeline.top_k, ReadInteger(flags, "top-k", 1, kMaxTopK));
  DPAR_ASSIGN_OR_RETURN(pipeline.appr_noise, ReadNumber(flags, "appr-noise", CheckNoiseMultiplier));
  if (pipeline.method == ApprMethod::kEm1) {
    DPAR_ASSIGN_OR_RETURN(pipeline.value_noise, ReadNumber(flags, "value-noise", CheckNoiseMultiplier));
  }
  DPAR_ASSIGN_OR_RETURN(pipeline.sampling_rate, ReadNumber(flags, "sampling-rate", CheckRate));
  DPAR_ASSIGN_OR_RETURN(pipeline.noise_multiplier, ReadNumber(flags, "noise-multiplier", CheckNoiseMultiplier));
  DPAR_ASSIGN_OR_RETURN(pipeline.steps, ReadInteger(flags, "steps", 1, kMaxEventCount));
  // A row mixture has one row more: the node's own.
  DPAR_ASSIGN_OR_RETURN(pipeline.max_occurrence, ReadInteger(flags, "max-occurrence", 0, kMaxEventRows - 1));
  DPAR_ASSIGN_OR_RETURN(pipeline.node_sampling_rate, ReadNumber(flags, "node-sampling-rate", CheckPipelineRate));
  return pipeline;
}

struct SoundBound {
  double appr_epsilon = 0;
  double sgd_epsilon = 0;
  double epsilon = 0;
  v1::PrivacyEvent event;  // the whole
};

// One stage as if it alone were released from the sample.
absl::StatusOr<double> StageEpsilon(const std::vector<v1::PrivacyEvent>& parts, double node_sampling_rate,
                                    double delta) {
  DPAR_ASSIGN_OR_RETURN(v1::PrivacyEvent stage, MakeCompositionEvent(parts));
  if (node_sampling_rate != 1) {
    DPAR_ASSIGN_OR_RETURN(stage, MakeNodeSamplingEvent(node_sampling_rate, stage));
  }
  return EventEpsilon(stage, delta);
}

absl::StatusOr<SoundBound> ComputeSoundBound(const DparPipeline& pipeline, double delta) {
  SoundBound cost;
  DPAR_ASSIGN_OR_RETURN(cost.event, SoundEvent(pipeline));
  const v1::PrivacyEvent& event = cost.event;
  const v1::CompositionEvent& parts =
      event.has_node_sampling() ? event.node_sampling().event().composition() : event.composition();
  // SoundEvent composes in the order of the stages: DP-SGD is the last part, and those before it are DP-APPR.
  std::vector<v1::PrivacyEvent> appr(parts.events().begin(), parts.events().end());
  const std::vector<v1::PrivacyEvent> sgd = {appr.back()};
  appr.pop_back();
  DPAR_ASSIGN_OR_RETURN(cost.appr_epsilon, StageEpsilon(appr, pipeline.node_sampling_rate, delta));
  DPAR_ASSIGN_OR_RETURN(cost.sgd_epsilon, StageEpsilon(sgd, pipeline.node_sampling_rate, delta));
  DPAR_ASSIGN_OR_RETURN(cost.epsilon, EventEpsilon(cost.event, delta));
  return cost;
}

Json ComparisonJson(const std::string& method, double delta, const SoundBound& sound, const PublishedClaim& published) {
  Json json = {{"method", method}, {"delta", delta}};
  json["sound"] = {
      {"appr_epsilon", sound.appr_epsilon}, {"sgd_epsilon", sound.sgd_epsilon}, {"epsilon", sound.epsilon}};
  json["published"] = {{"appr_epsilon", published.appr_epsilon},
                       {"sgd_epsilon", published.sgd_epsilon},
                       {"epsilon", published.epsilon},
                       {"appr_delta", published.appr_delta},
                       {"sgd_delta", published.sgd_delta}};
  json["event"] = MessageToJson(sound.event);
  return json;
}

void PrintComparison(Session& session, const std::string& method, double delta, const SoundBound& sound,
                     const PublishedClaim& published) {
  Table table({"STAGE", "SOUND EPSILON", "PUBLISHED EPSILON"}, {0});
  table.Add({"DP-APPR", FormatNumberUp(sound.appr_epsilon), FormatNumberUp(published.appr_epsilon)});
  table.Add({"DP-SGD", FormatNumberUp(sound.sgd_epsilon), FormatNumberUp(published.sgd_epsilon)});
  table.Add({"whole pipeline", FormatNumberUp(sound.epsilon), FormatNumberUp(published.epsilon)});
  session.out() << method << " at delta " << FormatNumberUp(delta) << "\n\n"
                << table.Render(session.TableWidth()) << "\n"
                << "The sound figures are bounds, each stage's for it alone at delta " << FormatNumberUp(delta) << ".\n"
                << "The published figures are the paper's claim and not a bound, each stage's at\n"
                << "delta " << FormatNumberUp(published.appr_delta) << ". Budgets use the sound ones only.\n";
}

absl::StatusOr<int> RunCompare(Session& session, const Flags& flags) {
  DPAR_ASSIGN_OR_RETURN(const DparPipeline pipeline, ReadPipeline(flags));
  DPAR_ASSIGN_OR_RETURN(const double delta, ReadNumber(flags, "delta", ValidateProbability));
  DPAR_ASSIGN_OR_RETURN(const PublishedClaim published, PublishedEpsilon(pipeline, delta));
  DPAR_ASSIGN_OR_RETURN(const SoundBound sound, ComputeSoundBound(pipeline, delta));
  const std::string method = Typed(flags, "method");
  if (session.json()) {
    session.PrintJson(ComparisonJson(method, delta, sound, published));
  } else {
    PrintComparison(session, method, delta, sound, published);
  }
  return kDone;
}

}  // namespace

void AddCompareCommand(CLI::App& group, Command& chosen) {
  const auto flags = std::make_shared<Flags>();
  const DparPipeline defaults;
  CLI::App* command = group.add_subcommand(
      "compare", "What a DPAR pipeline costs: sound, and as published (the paper's claim, not a bound)");
  AddFlag(*command, *flags, "method", "NAME", "dpar-em0, dpar-em1 or dpar-gm")->required();
  AddFlagWithDefault(*command, *flags, "seeds", "INT", absl::StrCat(defaults.seeds), "Rows of DP-APPR, M");
  AddFlagWithDefault(*command, *flags, "top-k", "INT", absl::StrCat(defaults.top_k), "Entries of a row, K");
  AddFlag(*command, *flags, "appr-noise", "FLOAT",
          "Noise of DP-APPR over its clipping bound: Gumbel scale (em), standard deviation (gm)")
      ->required();
  AddFlag(*command, *flags, "value-noise", "FLOAT", "Laplace scale over the clipping bound (dpar-em1, required there)");
  AddFlag(*command, *flags, "sampling-rate", "FLOAT", "Of a batch of DP-SGD, 0 to 1")->required();
  AddFlag(*command, *flags, "noise-multiplier", "FLOAT", "Of DP-SGD")->required();
  AddFlag(*command, *flags, "steps", "INT", "Of DP-SGD")->required();
  AddFlagWithDefault(*command, *flags, "max-occurrence", "INT", absl::StrCat(defaults.max_occurrence),
                     "Rows that list a node besides its own, at most");
  AddFlagWithDefault(*command, *flags, "node-sampling-rate", "FLOAT", absl::StrCat(defaults.node_sampling_rate),
                     "Chance of a node to be kept, once and secretly");
  AddFlag(*command, *flags, "delta", "FLOAT", "Above 0 and below 1")->required();
  command->footer(
      Examples("  dpar privacy compare --method dpar-em0 --seeds 70 --top-k 2 --appr-noise 40 \\\n"
               "      --sampling-rate 0.05 --noise-multiplier 5 --steps 200 --max-occurrence 3 --delta 1e-3"));
  RunWhenParsed(*command, flags, RunCompare, chosen);
}

}  // namespace dpar
