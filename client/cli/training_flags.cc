#include "client/cli/training_flags.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "client/cli/labels.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;

struct FieldHelp {
  absl::string_view field;
  const char* group;
  const char* help;
};

// Lines of at most 46 columns, so that the help fits into 80.
constexpr std::array<FieldHelp, 26> kHelp = {{
    {"structure_share", kStructureFlags, "Share of epsilon for DP-APPR, 0 to below 1"},
    {"top_k", kStructureFlags, "K: entries that are kept in a row"},
    {"appr_nodes", kStructureFlags, "M: number of DP-APPR rows"},
    {"row_clip", kStructureFlags, "C1: largest norm of a row (dpar-gm)"},
    {"entry_clip", kStructureFlags, "C2: largest entry (dpar-em0, dpar-em1)"},
    {"column_clip", kStructureFlags, "tau: largest sum of a column"},
    {"max_occurrence", kStructureFlags, "Most rows that list a node besides its own"},
    {"node_sampling_rate", kDescentFlags, "q': keep each node with this probability"},
    {"alpha", kStructureFlags, "Teleport probability of PageRank"},
    {"rho", kStructureFlags, "Regularisation of PageRank"},
    {"gamma", kStructureFlags, "Tolerance of PageRank"},
    {"batch_size", kDescentFlags, "B: expected rows in a batch (default: all)"},
    {"steps", kDescentFlags, "T: number of steps"},
    {"learning_rate", kDescentFlags, "Step size"},
    {"gradient_clip", kDescentFlags, "C: largest norm of a row's gradient"},
    {"momentum", kDescentFlags, "Of sgd, 0 to 0.999"},
    {"hidden_size", kDescentFlags, "Width of the hidden layer; 0 is none"},
    {"epochs", kDescentFlags, "Passes over the rows, instead of --steps"},
    {"optimizer", kDescentFlags, "How noisy gradients move the weights"},
    {"transform", kDescentFlags, "What becomes of each feature row first"},
    {"rows", kStructureFlags, "Rows to train on"},
    {"center", kDescentFlags, "Whether a private mean is subtracted first"},
    {"shift", kDescentFlags, "Whether class shares are released as well, by\nwhich predict corrects shifted graphs"},
    {"hops", kStructureFlags, "gap: sums over neighbours, 1 to 5"},
    {"aggregation_clip", kStructureFlags, "gap: R, largest norm of such a sum"},
    {"neighbours", kStructureFlags, "sage: neighbours that are sampled for a node"},
}};

std::string TypeOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return "INT";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "on|off";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrJoin(EnumeratorLabels(*field.enum_type()), "|");
    default:
      return "FLOAT";
  }
}

absl::Status Mistyped(const std::string& flag, absl::string_view expected, const std::string& typed) {
  return InvalidField(flag, absl::StrCat("--", flag, " must be ", expected, ", got ", typed));
}

absl::Status SetField(const FieldDescriptor& field, const std::string& typed, v1::TrainingOptions& options) {
  const std::string flag = TrainingFlagName(field);
  const Reflection* reflection = options.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64: {
      int64_t value = 0;
      if (!absl::SimpleAtoi(typed, &value)) {
        return Mistyped(flag, "an integer", typed);
      }
      reflection->SetInt64(&options, &field, value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      if (typed != "on" && typed != "off") {
        return Mistyped(flag, "on or off", typed);
      }
      reflection->SetBool(&options, &field, typed == "on");
      return absl::OkStatus();
    case FieldDescriptor::CPPTYPE_ENUM: {
      DPAR_ASSIGN_OR_RETURN(const auto* value, ParseEnumerator(flag, *field.enum_type(), typed));
      reflection->SetEnum(&options, &field, value);
      return absl::OkStatus();
    }
    default: {
      double value = 0;
      if (!absl::SimpleAtod(typed, &value)) {
        return Mistyped(flag, "a number", typed);
      }
      reflection->SetDouble(&options, &field, value);
      return absl::OkStatus();
    }
  }
}

}  // namespace

std::string TrainingFlagName(const FieldDescriptor& field) { return absl::StrReplaceAll(field.name(), {{"_", "-"}}); }

void AddTrainingFlags(CLI::App& command, Flags& flags) {
  const Descriptor* type = v1::TrainingOptions::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor& field = *type->field(i);
    const auto* help =
        std::find_if(kHelp.begin(), kHelp.end(), [&](const FieldHelp& entry) { return entry.field == field.name(); });
    const bool known = help != kHelp.end();
    AddFlag(command, flags, TrainingFlagName(field), TypeOf(field), known ? help->help : "")
        ->group(known ? help->group : kDescentFlags);
  }
}

absl::StatusOr<v1::TrainingOptions> ReadTrainingFlags(const Flags& flags) {
  v1::TrainingOptions options;
  const Descriptor* type = v1::TrainingOptions::descriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor& field = *type->field(i);
    if (const std::string typed = Typed(flags, TrainingFlagName(field)); !typed.empty()) {
      DPAR_RETURN_IF_ERROR(SetField(field, typed, options));
    }
  }
  return options;
}

}  // namespace dpar
