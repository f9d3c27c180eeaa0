// dpar-lab plot: pictures of what sweep and embed wrote, through Debian's matplotlib.
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "tests/lab/commands.h"
#include "tests/lab/plot_script.h"
#include "tests/lab/run_program.h"

namespace dpar::lab {
namespace {

// Debian's, whatever other Python comes first by $PATH: it is the one that has Debian's matplotlib.
constexpr const char* kPython = "/usr/bin/python3";

struct PlotFlags {
  std::vector<std::string> inputs;
  std::string output = ".";
};

absl::StatusOr<CommandOutput> RunPlot(const PlotFlags& flags) {
  struct stat status {};
  if (::stat(flags.output.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return InvalidField("output", absl::StrCat("output must be a directory that is there; not '", flags.output, "'"));
  }
  std::vector<std::string> command = {kPython, "-c", kPlotScript, flags.output};
  command.insert(command.end(), flags.inputs.begin(), flags.inputs.end());
  const absl::Status run = RunProgram(command);
  if (!run.ok()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::INTERNAL_FAULT,
                     absl::StrCat("no picture was drawn: ", run.message()));
  }
  return CommandOutput{
      absl::StrCat("drew ", flags.inputs.size(), " files' pictures, as SVG and PNG, in ", flags.output), ""};
}

}  // namespace

void AddPlotCommand(CLI::App& app, Command& chosen) {
  const auto flags = std::make_shared<PlotFlags>();
  CLI::App* command = app.add_subcommand("plot", "Draw the files of sweep and embed as SVG and PNG");
  command->add_option("files", flags->inputs, "CSV files of dpar-lab sweep and dpar-lab embed")
      ->type_name("FILE")
      ->required();
  command->add_option("-o,--output", flags->output, "Directory that gets NAME.svg and NAME.png")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  command->footer(
      "Example:\n"
      "  dpar-lab plot epsilon-sound.csv epsilon-as-published.csv -o pictures\n"
      "One picture a sweep, in which files of the same sweep share their axes. Needs Debian's python3-matplotlib.");
  command->callback([flags, &chosen] { chosen = [flags] { return RunPlot(*flags); }; });
}

}  // namespace dpar::lab
