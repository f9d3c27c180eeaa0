#include "client/cli/certificate_document.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/format.h"
#include "client/cli/json.h"
#include "core/certificate/key_list.h"

namespace dpar {
namespace {

using Row = DocumentSection::Row;

// So that 1 / 2e-05 is 50,000 and not one less.
constexpr double kRoundingRoom = 1e-12;

std::string Plain(const Json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  return value.is_number_integer() ? FormatCount(value.get<int64_t>()) : value.dump();
}

std::string Spaced(const std::string& key) { return absl::StrReplaceAll(key, {{"_", " "}}); }

std::vector<std::string> Texts(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& text : list) {
    texts.push_back(Plain(text));
  }
  return texts;
}

std::vector<Row> ListRows(const Json& list) {
  std::vector<Row> rows;
  for (std::string& text : Texts(list)) {
    rows.push_back({"", std::move(text)});
  }
  return rows;
}

DocumentSection GuaranteeSection(const Statement& statement, const Json& predicate) {
  DocumentSection section{"What is guaranteed", {}, {}};
  if (statement.is_public) {
    section.paragraphs = {
        "Nothing. The owner declared this dataset public, so the model may tell anything about anybody in it.",
        absl::StrCat("The certificate's own words: \"", Plain(predicate["guarantee"]), "\".")};
    return section;
  }
  const double epsilon = statement.plan.epsilon();
  const double delta = statement.plan.delta();
  section.paragraphs = {
      absl::StrCat("Node-level differential privacy with epsilon ", Plain(predicate["epsilon"]), " and delta ",
                   Plain(predicate["delta"]), "."),
      absl::StrCat(
          "In words: compare the data as it was with the same data without one node, which is one person where "
          "every person is one node. Whatever somebody could do or conclude with this model, its probability is "
          "at most ",
          FormatNumberUp(std::exp(epsilon)),
          " times (e to the power of epsilon) what it would have been without "
          "that node, plus at most delta, which is 1 in ",
          FormatCount(static_cast<int64_t>(std::floor((1 + kRoundingRoom) / delta))),
          ". This holds for every node, whatever else is known about it, and for ever.")};
  section.rows = {{"What one node is", Plain(predicate["unit_of_privacy"])},
                  {"What is compared", Plain(predicate["neighbour_relation"])}};
  if (const std::vector<std::string> columns = ReadOffTheData(statement); !columns.empty()) {
    section.rows.push_back({"Read off the data", absl::StrJoin(columns, ", ")});
    section.rows.push_back(
        {"What that is",
         "columns whose range, values or classes in the schema the owner took from the rows. No noise "
         "covers those figures"});
  }
  const Json published = predicate.value("published", Json());
  if (published.is_object()) {
    section.rows.push_back({"The paper's claim, not the guarantee",
                            absl::StrCat("epsilon ", Plain(published["epsilon"]), ": ", Plain(published["claim"]))});
  }
  return section;
}

DocumentSection SubjectSection(const Statement& statement, const Json& predicate) {
  DocumentSection section{"What it is about", {}, {}};
  section.rows = {{"Job", statement.job, true}, {"Made", statement.created_at}};
  for (const auto& [name, digest] : statement.subjects) {
    section.rows.push_back({absl::StrCat("SHA-256 of ", name), digest, true});
  }
  const Json& dataset = predicate["dataset"];
  section.rows.push_back({"Dataset", statement.dataset, true});
  section.rows.push_back({"Keyed digest of the dataset", statement.dataset_digest, true});
  section.rows.push_back({"What that digest is", Plain(dataset["digest_scope"])});
  section.rows.push_back(
      {"Size, as declared", absl::StrCat(Plain(dataset["node_count"]), " nodes, ", Plain(dataset["feature_count"]),
                                         " features, ", Plain(dataset["class_count"]), " classes")});
  section.rows.push_back({"Bounds, as declared", absl::StrCat("at most ", Plain(dataset["edge_bound"]), " edges and ",
                                                              Plain(dataset["entry_bound"]), " feature entries")});
  if (statement.max_degree > 0) {
    section.rows.push_back({"Degree promise, as declared",
                            absl::StrCat("no node has more than ", FormatCount(statement.max_degree), " neighbours")});
  }
  return section;
}

DocumentSection BudgetSection(const Statement& statement, const Json& predicate) {
  DocumentSection section{"The population's budget", {}, {}};
  section.paragraphs = {absl::StrCat(
      "All jobs on this population together are held to epsilon ", Plain(predicate["ledger"]["cap_epsilon"]),
      " and delta ", Plain(predicate["ledger"]["cap_delta"]),
      ", unless an operator raises it or more than 100% of it is used; later entries of the ledger say so. The ledger "
      "adds up what each has cost, in units: billionths of a nat of Renyi divergence at order ",
      Plain(predicate["ledger"]["order"]), ".")};
  const auto share = [&](int64_t units) {
    return statement.cap_units > 0
               ? absl::StrCat(FormatCount(units), " units (", FormatPercent(units, statement.cap_units), " of the cap)")
               : absl::StrCat(FormatCount(units), " units");
  };
  section.rows = {{"The cap", absl::StrCat(FormatCount(statement.cap_units), " units")},
                  {"Used before this job", share(statement.units_before)},
                  {"This job", share(statement.units)},
                  {"Used after it", share(statement.units_before + statement.units)},
                  {"Whose budget", Plain(predicate["ledger"]["scope"])},
                  {"What the cap is about", Plain(predicate["ledger"]["cap_relation"])},
                  {"Population", statement.population, true},
                  {"Ledger entry", FormatCount(statement.ledger_sequence)},
                  {"Its hash, the chain's head", statement.ledger_hash, true},
                  {"What that is", Plain(predicate["ledger"]["checkpoint"])}};
  return section;
}

// "gaussian: sensitivity 1.5, noise stddev 20, count 97".
std::string EventText(const Json& event) {
  std::vector<std::string> parts;
  for (const auto& [kind, content] : event.items()) {
    if (kind == "composition") {
      for (const Json& part : content["events"]) {
        parts.push_back(EventText(part));
      }
    } else if (kind == "stage") {
      parts.push_back(absl::StrCat(Plain(content["name"]), " [", EventText(content["event"]), "]"));
    } else if (kind == "repetition") {
      parts.push_back(absl::StrCat(Plain(content["count"]), " times [", EventText(content["event"]), "]"));
    } else if (kind == "node_sampling") {
      parts.push_back(absl::StrCat("on a secret sample of the nodes, each kept with probability ",
                                   Plain(content["sampling_rate"]), " [", EventText(content["event"]), "]"));
    } else {
      std::vector<std::string> numbers;
      for (const auto& [name, value] : content.items()) {
        numbers.push_back(absl::StrCat(Spaced(name), " ", Plain(value)));
      }
      parts.push_back(absl::StrCat(Spaced(kind), ": ", absl::StrJoin(numbers, ", ")));
    }
  }
  return absl::StrJoin(parts, "; then ");
}

constexpr const char* kTuning =
    "nothing: this job read no data to choose its parameters. Earlier jobs that may have guided the choice were "
    "charged by "
    "themselves";

DocumentSection ChargeSection(const Verification& verification, const Json& predicate) {
  DocumentSection section{"What was charged", {}, {}};
  const Json& charged = predicate["charged"];
  const auto was = [&](const char* what) {
    return charged[what] == "none" ? std::string("nothing") : std::string("yes, as part of the event");
  };
  section.rows = {{"Training", was("training")},
                  {"Tuning of parameters", charged["tuning"] == "none" ? kTuning : Plain(charged["tuning"])},
                  {"Evaluation", was("evaluation")}};
  const Json& event = predicate["event"];
  if (event.is_object()) {
    const Json parts = event.contains("composition") ? event["composition"]["events"] : Json::array({event});
    for (const Json& part : parts) {
      section.rows.push_back({"Part of the event", EventText(part)});
    }
  }
  const Json& accountant = predicate["accountant"];
  section.rows.push_back({"Accountant", absl::StrCat(Plain(accountant["name"]), ", version ",
                                                     Plain(accountant["version"]), ": ", Plain(accountant["method"]))});
  if (!verification.statement.is_public) {
    section.rows.push_back({"Epsilon, recomputed here", Plain(Json(verification.recomputed_epsilon))});
  }
  return section;
}

DocumentSection ReleaseSection(const Statement& statement, const Json& predicate) {
  DocumentSection section{"What was released", {}, ListRows(predicate["released"])};
  if (statement.evaluation.has_value()) {
    const Json& evaluation = predicate["evaluation"];
    section.rows.push_back(
        {"Accuracy on held-out nodes",
         absl::StrCat(Plain(evaluation["accuracy"]), ", with 95% confidence between ", Plain(evaluation["low"]),
                      " and ", Plain(evaluation["high"]), ", from ", Plain(evaluation["held_out_slots"]), " nodes")});
  }
  return section;
}

DocumentSection UnprotectedSection(const Json& predicate) {
  DocumentSection section{
      "What is not protected", {"These quantities are treated as public. The guarantee says nothing about them."}, {}};
  for (const Json& entry : predicate["unprotected"]) {
    section.rows.push_back(
        {Plain(entry["quantity"]), entry["value"].is_null() ? "none was declared" : Plain(entry["value"])});
  }
  return section;
}

void AddPlanRows(const Json& plan, const std::string& prefix, std::vector<Row>& rows) {
  for (const auto& [key, value] : plan.items()) {
    const std::string label = absl::StrCat(prefix, Spaced(key));
    if (value.is_object()) {
      AddPlanRows(value, absl::StrCat(label, ": "), rows);
    } else {
      rows.push_back({label, value.is_string() ? absl::StrReplaceAll(Plain(value), {{"_", " "}}) : Plain(value)});
    }
  }
}

DocumentSection MechanismSection(const Json& predicate) {
  DocumentSection section{"How the model was made", {Plain(predicate["mechanism"]["description"])}, {}};
  AddPlanRows(predicate["mechanism"]["plan"], "", section.rows);
  return section;
}

std::string Mark(bool passed, bool utf8) { return passed ? (utf8 ? "✓" : "ok  ") : (utf8 ? "✗" : "FAIL"); }

// `text` in lines of at most `width` columns; the first follows `first`, the others as many spaces.
void Wrap(const std::string& text, int width, const std::string& first, std::string& out) {
  const std::string indent(static_cast<size_t>(DisplayWidth(first)), ' ');
  std::string line = first;
  bool empty = true;
  for (const absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    if (!empty && DisplayWidth(line) + 1 + DisplayWidth(word) > width) {
      absl::StrAppend(&out, line, "\n");
      line = indent;
      empty = true;
    }
    absl::StrAppend(&line, empty ? "" : " ", word);
    empty = false;
  }
  absl::StrAppend(&out, line, "\n");
}

std::string Escape(const std::string& text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}});
}

constexpr const char* kStyle = R"css(
:root { color-scheme: light; }
body { font: 11pt/1.5 Georgia, "Liberation Serif", "DejaVu Serif", serif; color: #1a1a1a; background: #fff;
  max-width: 46rem; margin: 2.5rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.9em; line-height: 1.2; margin: 0 0 .2em; }
.issuer { color: #555; margin: 0 0 1.4em; }
h2 { font-size: 1.2em; margin: 2em 0 .5em; padding-top: .7em; border-top: 1px solid #c8c8c8; break-after: avoid; }
.verdict { border: 1px solid; border-left-width: .5em; padding: .8em 1.1em; margin: 1.4em 0; font-weight: bold;
  overflow-wrap: anywhere; }
.guaranteed { border-color: #1b6e3c; background: #eef7f0; color: #12502b; }
.nothing-guaranteed { border-color: #9a6a00; background: #fdf6e3; color: #6b4a00; }
.not-verified { border-color: #a11; background: #fceeee; color: #800; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; vertical-align: top; font-weight: normal; color: #555; width: 32%; padding: .25em 1em .25em 0; }
td { vertical-align: top; padding: .25em 0; overflow-wrap: anywhere; }
tr { break-inside: avoid; border-bottom: 1px solid #eee; }
code { font: .86em/1.4 "DejaVu Sans Mono", "Liberation Mono", monospace; overflow-wrap: anywhere; }
ul { margin: .3em 0; padding-left: 1.3em; }
.checks td:first-child { width: 1.6em; font-weight: bold; }
.checks th { width: 24%; color: #1a1a1a; }
.footer { margin-top: 2.5em; padding-top: .7em; border-top: 1px solid #c8c8c8; color: #555; }
.ok { color: #1b6e3c; } .bad { color: #a11; }
@page { margin: 20mm 18mm; }
@media print { body { margin: 0; padding: 0; max-width: none; font-size: 10pt; }
  .verdict { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
)css";

std::string SectionHtml(const DocumentSection& section) {
  std::string html = absl::StrCat("<h2>", Escape(section.heading), "</h2>\n");
  for (const std::string& paragraph : section.paragraphs) {
    absl::StrAppend(&html, "<p>", Escape(paragraph), "</p>\n");
  }
  std::string list;
  std::string table;
  for (const Row& row : section.rows) {
    const std::string value = row.is_code ? absl::StrCat("<code>", Escape(row.value), "</code>") : Escape(row.value);
    if (row.label.empty()) {
      absl::StrAppend(&list, "<li>", value, "</li>\n");
    } else {
      absl::StrAppend(&table, "<tr><th scope=\"row\">", Escape(row.label), "</th><td>", value, "</td></tr>\n");
    }
  }
  if (!list.empty()) {
    absl::StrAppend(&html, "<ul>\n", list, "</ul>\n");
  }
  if (!table.empty()) {
    absl::StrAppend(&html, "<table>\n", table, "</table>\n");
  }
  return html;
}

std::string ChecksHtml(const std::vector<Check>& checks) {
  std::string html = "<h2>What was checked</h2>\n<table class=\"checks\">\n";
  for (const Check& check : checks) {
    absl::StrAppend(&html, "<tr><td class=\"", check.passed ? "ok" : "bad", "\">", Mark(check.passed, /*utf8=*/true),
                    "</td><th scope=\"row\">", Escape(check.name), "</th><td>", Escape(check.detail), "</td></tr>\n");
  }
  return absl::StrCat(html, "</table>\n");
}

const char* StandingClass(Standing standing) {
  switch (standing) {
    case Standing::kGuaranteed:
      return "guaranteed";
    case Standing::kNothingGuaranteed:
      return "nothing-guaranteed";
    case Standing::kNotVerified:
      break;
  }
  return "not-verified";
}

}  // namespace

std::string Verdict(const Verification& verification) {
  if (!verification.passed()) {
    return "NOT VERIFIED: do not rely on this certificate for this model";
  }
  const Statement& statement = verification.statement;
  if (statement.is_public) {
    return "AUTHENTIC, BUT NOT PRIVATE: the data was declared public, and nothing is guaranteed about it";
  }
  return absl::StrCat(
      "VERIFIED: epsilon ", FormatNumber(statement.plan.epsilon()), " at delta ", FormatNumber(statement.plan.delta()),
      " for every node of ", statement.dataset,
      statement.plan.has_max_degree()
          ? absl::StrCat(", as long as no node has more than ", FormatCount(statement.plan.max_degree()), " neighbours")
          : "");
}

std::vector<std::string> ReadOffTheData(const Statement& statement) {
  const Json schema = Json::parse(statement.schema, nullptr, /*allow_exceptions=*/false);
  return schema.is_object() ? Texts(schema.value("accepted_observed", Json::array())) : std::vector<std::string>();
}

Standing StandingOf(const Verification& verification) {
  if (!verification.passed()) {
    return Standing::kNotVerified;
  }
  return verification.statement.is_public ? Standing::kNothingGuaranteed : Standing::kGuaranteed;
}

CertificateDocument MakeCertificateDocument(const Verification& verification) {
  const Statement& statement = verification.statement;
  const Json predicate = Json::parse(StatementToJson(statement))["predicate"];
  CertificateDocument page;
  page.standing = StandingOf(verification);
  page.verdict = Verdict(verification);
  page.checks = verification.checks;
  page.sections = {GuaranteeSection(statement, predicate), SubjectSection(statement, predicate)};
  if (!statement.is_public) {
    page.sections.push_back(BudgetSection(statement, predicate));
  }
  page.sections.push_back(ReleaseSection(statement, predicate));
  page.sections.push_back({"What was not released", {}, ListRows(predicate["not_released"])});
  page.sections.push_back(UnprotectedSection(predicate));
  page.sections.push_back(
      {"Who is trusted",
       {},
       {{"Trust", Plain(predicate["trust_model"])}, {"Source of randomness", Plain(predicate["random_source"])}}});
  page.sections.push_back(ChargeSection(verification, predicate));
  page.sections.push_back(MechanismSection(predicate));
  page.sections.push_back({"Who signed it",
                           {},
                           {{"Signing key", verification.key_id, true},
                            {"Program", statement.software},
                            {"Built from", statement.build},
                            {"Format", std::string(kPredicateType), true}}});
  return page;
}

std::string RenderChecks(const std::vector<Check>& checks, int width, bool utf8, bool colour) {
  constexpr int kMarkWidth = 2;
  const int room = width == 0 ? std::numeric_limits<int>::max() : width - kMarkWidth;
  std::string text;
  for (const Check& check : checks) {
    std::string lines;
    Wrap(absl::StrCat(check.name, check.detail.empty() ? "" : ": ", check.detail), room, "", lines);
    lines.pop_back();
    absl::StrAppend(&text, Coloured(check.passed ? Colour::kGreen : Colour::kRed, Mark(check.passed, utf8), colour),
                    " ", absl::StrReplaceAll(lines, {{"\n", "\n  "}}), "\n");
  }
  return text;
}

std::string RenderText(const CertificateDocument& page, int width, bool utf8, bool colour) {
  const auto heading = [&](absl::string_view text) {
    return absl::StrCat("\n", Coloured(Colour::kBold, text, colour), "\n");
  };
  std::string text = absl::StrCat(Coloured(Colour::kBold, "PRIVACY CERTIFICATE", colour), "\n");
  for (const DocumentSection& section : page.sections) {
    absl::StrAppend(&text, heading(section.heading));
    for (const std::string& paragraph : section.paragraphs) {
      Wrap(paragraph, width, "  ", text);
    }
    for (const Row& row : section.rows) {
      Wrap(row.value, width, row.label.empty() ? "  - " : absl::StrCat("  ", row.label, ": "), text);
    }
  }
  absl::StrAppend(&text, heading("What was checked"));
  std::string checks = RenderChecks(page.checks, width - 2, utf8, colour);
  checks.pop_back();
  absl::StrAppend(&text, "  ", absl::StrReplaceAll(checks, {{"\n", "\n  "}}), "\n");
  const Colour verdict = page.standing == Standing::kGuaranteed ? Colour::kGreen : Colour::kYellow;
  absl::StrAppend(&text, "\n", Coloured(verdict, page.verdict, colour), "\n");
  return text;
}

std::string RenderHtml(const CertificateDocument& page) {
  std::string html = absl::StrCat(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
      "<title>Privacy certificate</title>\n<style>",
      kStyle, "</style>\n</head>\n<body>\n<h1>Privacy certificate</h1>\n",
      "<p class=\"issuer\">what a model's training may tell about the nodes of its graph; checked by dpar on this "
      "machine</p>\n",
      "<p class=\"verdict ", StandingClass(page.standing), "\">", Escape(page.verdict), "</p>\n");
  absl::StrAppend(&html, SectionHtml(page.sections.front()), ChecksHtml(page.checks));
  for (size_t i = 1; i < page.sections.size(); ++i) {
    absl::StrAppend(&html, SectionHtml(page.sections[i]));
  }
  absl::StrAppend(
      &html,
      "<p class=\"footer\">This page is only a rendering, and proves nothing by itself: what counts is the signed "
      "file. Anybody can repeat these checks with <code>dpar certificate verify</code>, or with other "
      "programs, as docs/certificate.md describes.</p>\n</body>\n</html>\n");
  return html;
}

}  // namespace dpar
