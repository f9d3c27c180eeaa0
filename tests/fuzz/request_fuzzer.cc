// Requests from strangers. The first byte chooses a message of the API, the second the sizes of the dataset that it
// meets, and the rest is the message as it comes off the wire; every check that a handler makes is made of it.
//
// For any bytes the result is OK, or an error of a few codes that names its reason; names, page tokens, tokens and
// events that are accepted come back as they were; plans that are accepted cost what was asked for at most.
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/message_json.h"
#include "core/plan/options.h"
#include "core/plan/plan.h"
#include "core/plan/plan_event.h"
#include "core/privacy/budget.h"
#include "core/privacy/event.h"
#include "core/validate.h"
#include "dpar/v1/budget.pb.h"
#include "dpar/v1/dataset.pb.h"
#include "dpar/v1/operator.pb.h"
#include "dpar/v1/server.pb.h"
#include "dpar/v1/training.pb.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/util/json_util.h"
#include "server/admission/estimate.h"
#include "server/auth/token.h"
#include "server/ledger/ledger.h"
#include "server/resource_name.h"
#include "server/services/page_size.h"
#include "server/store/paging.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/messages.h"
#include "tests/fuzz/require.h"

namespace dpar::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::JsonStringToMessage;
using Code = absl::StatusCode;

constexpr PublicSizes kDatasets[] = {
    {3, 2, 2}, {1, 1, 2}, {2708, 1433, 7}, {19'717, 500, 3}, {20'000'000, 1'000'000, 10'000}};

// An accepted name is put together again from its parts.
void CheckNames(const std::string& text) {
  const absl::StatusOr<TenantName> tenant = ParseTenantName("parent", text);
  RequireJudged(tenant.status(), {Code::kInvalidArgument});
  Require(!tenant.ok() || (tenant->name == text && text == "tenants/" + tenant->id), "a tenant's name is its parts");
  const absl::StatusOr<TenantName> parent = ParseTokenParent("parent", text);
  RequireJudged(parent.status(), {Code::kInvalidArgument});
  Require(parent.ok() == (tenant.ok() || text == kOperatorParent), "tokens belong to tenants or operators");
  const std::pair<const char*, absl::StatusOr<ResourceName>> resources[] = {
      {"/datasets/", ParseDatasetName("name", text)},
      {"/uploads/", ParseUploadName("name", text)},
      {"/populations/", ParsePopulationName("name", text)},
      {"/jobs/", ParseJobName("name", text)},
      {"/tokens/", ParseTokenName("name", text)}};
  for (const auto& [collection, name] : resources) {
    RequireJudged(name.status(), {Code::kInvalidArgument});
    Require(!name.ok() ||
                (name->name == text && text == name->tenant + collection + name->id && ValidateId("id", name->id).ok()),
            "a name is its parts");
  }
}

void CheckText(const std::string& text) {
  CheckNames(text);
  RequireJudged(ValidateId("id", text), {Code::kInvalidArgument});
  RequireJudged(ValidateRequestId(text), {Code::kInvalidArgument});
  const absl::StatusOr<PagePosition> position = ParsePageToken(text);
  RequireJudged(position.status(), {Code::kInvalidArgument});
  if (position.ok()) {
    const absl::StatusOr<PagePosition> again = ParsePageToken(MakePageToken(*position));
    Require(again.ok() && again->time == position->time && again->name == position->name, "a page token is its place");
  }
  const std::optional<BearerToken> token = ParseBearerToken(text);
  Require(!token.has_value() || FormatBearerToken(*token) == text, "a token is its parts");
}

absl::Status CheckEvent(const v1::PrivacyEvent& event) {
  const absl::Status valid = ValidateEvent(event);
  RequireJudged(valid, {Code::kInvalidArgument});
  if (valid.ok()) {
    v1::PrivacyEvent again;
    Require(JsonStringToMessage(MessageToJson(event).dump(), &again).ok() &&
                again.SerializeAsString() == event.SerializeAsString(),
            "an event is its JSON");
  }
  return valid;
}

// Every text and event of a message, at any depth.
void CheckFields(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_repeated() || field->is_map()) {
      continue;
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      CheckText(message.GetReflection()->GetString(message, field));
    } else if (field->name() == "page_size") {
      const absl::StatusOr<int64_t> size = PageSize(message.GetReflection()->GetInt32(message, field));
      RequireJudged(size.status(), {Code::kInvalidArgument});
      Require(!size.ok() || (*size >= 1 && *size <= kMaxPageSize), "pages are of 1 to 1000");
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      CheckFields(message.GetReflection()->GetMessage(message, field));
    }
  }
}

// Whether a plan takes milliseconds. Calibrating selections, batches and samples asks the accountant up to 30 times,
// which takes seconds: of those requests the options are checked, and no noise is looked for.
bool IsQuick(const v1::TrainingSpec& spec) {
  const v1::TrainingOptions& options = spec.options();
  const bool full_batches = !options.has_batch_size() && !options.has_node_sampling_rate();
  const bool reads_edges = spec.method() > v1::FEATURES;
  const bool quick = spec.preset() != v1::PAPER && full_batches && !reads_edges;
  return quick || spec.non_private();
}

void CheckPlan(const v1::TrainingSpec& spec, const v1::Plan& plan, const PublicSizes& sizes) {
  Require(plan.steps() >= 1 && plan.steps() <= kMaxSteps, "steps are within their limit");
  Require(plan.training_slots() >= 1 && plan.training_slots() <= sizes.node_count, "slots are within the dataset");
  Require(std::isfinite(plan.learning_rate()) && plan.learning_rate() > 0, "a learning rate is finite");
  Require(EstimateJobBytes(plan, sizes, {1 << 17, 1 << 17}, 4) > 0, "an estimate of memory is above 0");
  Require(EstimateJobTime(plan, sizes, {1 << 17, 1 << 17}, 4) > absl::ZeroDuration(), "an estimate of time is above 0");
  if (plan.non_private()) {
    return;
  }
  Require(std::isfinite(plan.noise_multiplier()) && plan.noise_multiplier() > 0, "noise is finite and above 0");
  Require(spec.preset() == v1::PAPER || plan.epsilon() <= spec.epsilon(), "a plan costs what was asked for at most");
  Require(CheckEvent(plan.event()).ok(), "a plan's event is valid");
  const absl::StatusOr<v1::PrivacyEvent> derived = PlanEvent(plan, sizes);
  Require(derived.ok() && derived->SerializeAsString() == plan.event().SerializeAsString(), "a plan says what it is");
  const absl::StatusOr<BudgetTerms> terms = MakeBudgetTerms(8, spec.delta());
  RequireJudged(terms.status(), {Code::kFailedPrecondition, Code::kInvalidArgument});
  if (terms.ok() && IsQuick(spec)) {
    const absl::StatusOr<Price> price = MakePrice(plan.event(), plan.epsilon(), plan.delta(), *terms);
    RequireJudged(price.status(), {Code::kInvalidArgument, Code::kFailedPrecondition});
    Require(!price.ok() || price->cost.units >= 1, "nothing is free");
  }
}

void CheckSpec(v1::TrainingSpec spec, const PublicSizes& sizes) {
  if (!spec.has_delta() && !spec.non_private()) {
    spec.set_delta(DefaultDelta(sizes.node_count).value());
  }
  const absl::Status valid = ValidateSpec(spec, sizes);
  RequireJudged(valid, {Code::kInvalidArgument, Code::kFailedPrecondition, Code::kUnimplemented});
  if (!valid.ok()) {
    return;
  }
  if (!IsQuick(spec)) {
    const MethodTraits* method = FindMethod(spec.method() <= v1::AUTO ? v1::FEATURES : spec.method());
    const auto options = ResolveOptions(spec, *method, sizes, sizes.node_count);
    RequireJudged(options.status(), {Code::kInvalidArgument});
    return;
  }
  const absl::StatusOr<v1::Plan> plan = MakePlan(spec, sizes);
  RequireJudged(plan.status(), {Code::kInvalidArgument, Code::kFailedPrecondition, Code::kResourceExhausted});
  if (plan.ok()) {
    CheckPlan(spec, *plan, sizes);
  }
}

void CheckCap(double epsilon, double delta) {
  const absl::StatusOr<BudgetTerms> terms = MakeBudgetTerms(epsilon, delta);
  RequireJudged(terms.status(), {Code::kInvalidArgument, Code::kFailedPrecondition});
  if (!terms.ok()) {
    return;
  }
  Require(terms->order >= kMinOrder && terms->order <= kMaxOrder && terms->cap_units > 0, "a cap has an order");
  const absl::StatusOr<double> spent = EpsilonOfUnits(*terms, terms->cap_units);
  Require(spent.ok() && *spent <= epsilon * (1 + 1e-9), "a cap in units is not above the cap");
}

void Run(const uint8_t* data, size_t size) {
  // Each text that is not UTF-8 would be a line on stderr.
  static const google::protobuf::LogSilencer silence;
  FuzzInput input(data, size);
  const std::vector<const Message*>& messages = RequestMessages();
  const std::unique_ptr<Message> message(messages[input.Choice(messages.size())]->New());
  const PublicSizes& sizes = input.Pick(kDatasets);
  if (!message->ParseFromString(std::string(input.rest()))) {
    return;
  }
  // Fields of a later version are nobody's to check.
  message->DiscardUnknownFields();
  CheckFields(*message);
  if (const auto* event = dynamic_cast<const v1::PrivacyEvent*>(message.get())) {
    (void)CheckEvent(*event);
  } else if (const auto* job = dynamic_cast<const v1::CreateJobRequest*>(message.get())) {
    CheckSpec(job->spec(), sizes);
  } else if (const auto* upload = dynamic_cast<const v1::OpenUploadRequest*>(message.get())) {
    CheckCap(upload->cap_epsilon(), upload->cap_delta());
    RequireJudged(DefaultDelta(upload->node_count()).status(), {Code::kInvalidArgument});
  } else if (const auto* cap = dynamic_cast<const v1::SetBudgetCapRequest*>(message.get())) {
    const absl::StatusOr<int64_t> units = CapUnits(cap->cap_epsilon(), 1e-5, 20);
    RequireJudged(units.status(), {Code::kInvalidArgument, Code::kFailedPrecondition});
    Require(!units.ok() || *units >= 0, "a cap is not negative");
  } else if (const auto* plan = dynamic_cast<const v1::Plan*>(message.get())) {
    // Certificates come from strangers too.
    RequireJudged(PlanEvent(*plan, sizes).status(), {Code::kInvalidArgument, Code::kFailedPrecondition});
  }
}

}  // namespace
}  // namespace dpar::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dpar::fuzz::Run(data, size);
  return 0;
}
