// Reads what statement.cc writes.
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/certificate/statement.h"
#include "core/certificate/strict_json.h"
#include "core/error.h"
#include "core/message_json.h"
#include "core/privacy/event.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

void ReadSubjects(const JsonReader& reader, Statement& statement, absl::Status& status) {
  const Json& subjects = reader.Array("subject");
  for (const Json& element : subjects) {
    if (!element.is_object()) {
      reader.Fail("subject", "a list of objects");
      return;
    }
    const JsonReader subject(element, "subject", status);
    statement.subjects[subject.Text("name")] = subject.Object("digest").Text("sha256");
  }
}

absl::Status ReadPlan(const JsonReader& mechanism, v1::Plan& plan) {
  return MessageFromJson(mechanism.RawObject("plan"), "predicate.mechanism.plan", plan, FieldsBesideThePlan());
}

absl::Status ReadEvaluation(const JsonReader& predicate, Statement& statement) {
  if (!predicate.Has("evaluation")) {
    return absl::OkStatus();
  }
  return MessageFromJson(predicate.RawObject("evaluation"), "predicate.evaluation", statement.evaluation.emplace());
}

void ReadEvent(const JsonReader& predicate, v1::Plan& plan) {
  if (!predicate.Has("event")) {
    return;
  }
  const absl::StatusOr<v1::PrivacyEvent> event = EventFromJson(predicate.RawObject("event"));
  if (event.ok()) {
    *plan.mutable_event() = *event;
  } else {
    predicate.Fail("event", absl::StrCat("a valid event: ", event.status().message()));
  }
}

void ReadEntry(const JsonReader& reader, Statement& statement) {
  statement.ledger_sequence = reader.Integer("sequence");
  statement.ledger_hash = reader.Text("hash");
  if (IsSecondVersion(statement)) {
    return;
  }
  statement.previous_hash = reader.Text("previous_hash");
  statement.budget_id = reader.Text("budget_id");
  statement.entry_time_microseconds = reader.Integer("time_microseconds");
  statement.entry_actor = reader.Text("actor");
  statement.entry_attempt = reader.Integer("attempt");
  statement.entry_event = reader.Text("event");
}

void ReadLedger(const JsonReader& reader, Statement& statement) {
  statement.budget = reader.Text("budget");
  statement.cap_epsilon = reader.Number("cap_epsilon");
  statement.cap_delta = reader.Number("cap_delta");
  if (!IsBeforeFourth(statement) && reader.Has("cap_max_degree")) {
    statement.cap_max_degree = reader.Integer("cap_max_degree");
  }
  statement.order = reader.Integer("order");
  statement.units = reader.Integer("units");
  statement.plan.set_price_units(statement.units);
  if (IsSecondVersion(statement)) {
    ReadEntry(reader, statement);
    return;
  }
  statement.cap_units = reader.Integer("cap_units");
  statement.units_before = reader.Integer("units_before");
  ReadEntry(reader.Object("entry"), statement);
}

void ReadAccountant(const JsonReader& reader, Statement& statement) {
  statement.accountant_version = reader.Integer("version");
  if (!statement.is_public && !IsSecondVersion(statement)) {
    statement.accountant_epsilon = reader.Number("epsilon");
  }
}

absl::StatusOr<Statement> ReadStatement(const Json& json, int predicate_version) {
  absl::Status status;
  Statement statement;
  statement.predicate_version = predicate_version;
  const JsonReader root(json, "", status);
  ReadSubjects(root, statement, status);
  const JsonReader predicate = root.Object("predicate");
  status.Update(ReadPlan(predicate.Object("mechanism"), statement.plan));
  ReadEvent(predicate, statement.plan);
  status.Update(ReadEvaluation(predicate, statement));
  const JsonReader dataset = predicate.Object("dataset");
  statement.dataset = dataset.Text("name");
  statement.is_public = dataset.Boolean("public");
  statement.dataset_digest = dataset.Text("digest");
  statement.sizes.node_count = dataset.Integer("node_count");
  statement.sizes.feature_count = dataset.Integer("feature_count");
  statement.sizes.class_count = dataset.Integer("class_count");
  if (!IsBeforeFourth(statement) && dataset.Has("max_degree")) {
    statement.max_degree = dataset.Integer("max_degree");
  }
  ReadAccountant(predicate.Object("accountant"), statement);
  if (!statement.is_public) {
    ReadLedger(predicate.Object("ledger"), statement);
  }
  statement.software = predicate.Text("software");
  if (!IsSecondVersion(statement)) {
    statement.build = predicate.Text("build");
  }
  statement.created_at = predicate.Text("created_at");
  statement.job = predicate.Text("job");
  DPAR_RETURN_IF_ERROR(status);
  return statement;
}

// Why `json`, which parsed, is not what it would be written as.
absl::Status NotAsWritten(const Json& json, const Json& written) {
  const Json difference = Json::diff(written, json);
  if (difference.empty()) {
    return InvalidField("statement", "the statement is not in the byte form that this version writes");
  }
  const auto path = difference.front().value("path", "");
  return InvalidField(path, absl::StrCat("the statement differs at ", path, " from what this version writes"));
}

// The version of the predicate, if this program reads it.
absl::StatusOr<int> PredicateVersion(const Json& json) {
  const auto type = json.find("predicateType");
  if (type == json.end() || !type->is_string()) {
    return InvalidField("predicateType", "predicateType must be a string");
  }
  const auto text = type->get<std::string>();
  for (int version = kOldestPredicateVersion; version <= kPredicateVersion; ++version) {
    if (text == absl::StrCat(kPredicatePrefix, version)) {
      return version;
    }
  }
  if (text == absl::StrCat(kPredicatePrefix, 1)) {
    return InvalidField("predicateType",
                        absl::StrCat("the certificate is a ", text,
                                     ", which dpar 0.1 made; check it with dpar verify of that version"));
  }
  if (absl::StartsWith(text, kPredicatePrefix)) {
    return InvalidField("predicateType", absl::StrCat("the certificate is a ", text,
                                                      ", which this version does not know; use a newer dpar"));
  }
  return InvalidField("predicateType", absl::StrCat("predicateType must be ", kPredicateType));
}

}  // namespace

absl::StatusOr<Statement> StatementFromJson(absl::string_view json) {
  DPAR_ASSIGN_OR_RETURN(const Json parsed, ParseStrictJson("statement", json));
  DPAR_ASSIGN_OR_RETURN(const int version, PredicateVersion(parsed));
  DPAR_ASSIGN_OR_RETURN(Statement statement, ReadStatement(parsed, version));
  DPAR_RETURN_IF_ERROR(ValidateStatement(statement));
  if (const std::string written = StatementToJson(statement); written != json) {
    return NotAsWritten(parsed, Json::parse(written));
  }
  return statement;
}

}  // namespace dpar
