#include <memory>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/progress.h"
#include "client/cli/tables.h"
#include "client/sdk/input_file.h"
#include "core/graph/text_output.h"
#include "core/status_macros.h"
#include "core/table/draft.h"

namespace dpar {
namespace {

struct SchemaOptions {
  TableFiles files;
  DraftOptions choices;
  std::string output;
};

absl::StatusOr<int> RunSchema(Session& session, const SchemaOptions& options) {
  DPAR_RETURN_IF_ERROR(CheckInputFile("nodes", options.files.nodes));
  DPAR_RETURN_IF_ERROR(CheckInputFile("edges", options.files.edges));
  DPAR_RETURN_IF_ERROR(CheckOutputFile("output", options.output));
  ProgressLine line(session.err(), session.terminal());
  const auto draft = DraftSchema(options.files, options.choices, [&line](absl::string_view stage, double fraction) {
    line.Update(TableProgressState(stage, fraction));
    return true;
  });
  line.Finish();
  DPAR_RETURN_IF_ERROR(AsLocal(draft.status()));
  absl::StatusOr<TextOutput> file = TextOutput::Create(options.output);
  DPAR_RETURN_IF_ERROR(AsLocal(file.status()));
  file->Add(draft->yaml);
  DPAR_RETURN_IF_ERROR(AsLocal(file->Finish()));
  if (session.json()) {
    Json questions = Json::array();
    for (const SchemaQuestion& question : draft->questions) {
      questions.push_back({{"column", question.column}, {"question", question.text}});
    }
    session.PrintJson({{"file", options.output}, {"questions", std::move(questions)}});
    return kDone;
  }
  session.out() << "wrote " << options.output << ", a draft with " << draft->questions.size()
                << " questions about what it read off the data:\n";
  for (const SchemaQuestion& question : draft->questions) {
    session.out() << "  " << question.column << ": " << question.text << "\n";
  }
  session.out() << "next: answer them in the file and delete each `question`, then dpar upload --schema "
                << options.output << " --nodes " << options.files.nodes << " --edges " << options.files.edges << "\n";
  return kDone;
}

}  // namespace

void AddSchemaCommand(CLI::App& group, Command& chosen) {
  const auto options = std::make_shared<SchemaOptions>();
  CLI::App* command = group.add_subcommand("schema", "Draft a schema from tables, with questions to their owner");
  command->add_option("NODES", options->files.nodes, "Table with a row for each node (csv or tsv, may be gzip)")
      ->required();
  command->add_option("EDGES", options->files.edges, "Table with a row for each edge")->required();
  command->add_option("--id", options->choices.id, "Column of the ids (default: the first that can be)");
  command->add_option("--label", options->choices.label, "Column to predict (default: a guess)");
  command->add_option("-o,--output", options->output, "Schema to write (.yaml)")->required();
  command->footer(
      Examples("  dpar graph schema customers.csv transfers.csv -o people.schema.yaml\n"
               "  dpar graph schema customers.csv transfers.csv --label segment -o people.schema.yaml"));
  command->callback([options, &chosen] { chosen = [options](Session& s) { return RunSchema(s, *options); }; });
}

}  // namespace dpar
