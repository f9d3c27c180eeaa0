#include "tests/lab/cell.h"

#include "absl/strings/str_cat.h"
#include "core/message_json.h"

namespace dpar::lab {
namespace {

using Json = nlohmann::ordered_json;

// Raised by whoever changes planning, training or prediction so that a cell measures something else: results of before
// are then computed again.
constexpr int kMeasurementVersion = 2;

Json OptionalJson(const std::optional<double>& value) { return value.has_value() ? Json(*value) : Json(nullptr); }

}  // namespace

Json CellKey(const Cell& cell) {
  Json key;
  key["version"] = kMeasurementVersion;
  key["graph"] = cell.graph;
  key["digest"] = cell.digest;
  key["split"] = SplitName(cell.split);
  key["seed"] = cell.seed;
  key["spec"] = MessageToJson(cell.spec, {"dataset"});
  if (cell.promise > 0) {
    key["promise"] = cell.promise;
  }
  return key;
}

Json ResultJson(const CellResult& result) {
  Json json;
  json["none"] = result.none;
  json["power"] = result.power;
  json["mean_field"] = result.mean_field;
  json["sound_epsilon"] = OptionalJson(result.sound_epsilon);
  json["published_epsilon"] = OptionalJson(result.published_epsilon);
  json["seconds"] = result.seconds;
  return json;
}

absl::StatusOr<CellResult> ParseResult(const Json& json) {
  CellResult result;
  for (const auto& [name, place] :
       {std::pair("none", &result.none), std::pair("power", &result.power), std::pair("mean_field", &result.mean_field),
        std::pair("seconds", &result.seconds)}) {
    if (!json.contains(name) || !json[name].is_number()) {
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' is not a number"));
    }
    *place = json[name].get<double>();
  }
  for (const auto& [name, place] :
       {std::pair("sound_epsilon", &result.sound_epsilon), std::pair("published_epsilon", &result.published_epsilon)}) {
    if (!json.contains(name) || !(json[name].is_number() || json[name].is_null())) {
      return absl::InvalidArgumentError(absl::StrCat("'", name, "' is neither a number nor null"));
    }
    if (json[name].is_number()) {
      *place = json[name].get<double>();
    }
  }
  return result;
}

}  // namespace dpar::lab
