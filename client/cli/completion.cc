#include "client/cli/completion.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace dpar {
namespace {

void Collect(const CLI::App& app, const std::vector<std::string>& words, std::vector<CommandNode>& nodes) {
  nodes.push_back({words, &app});
  for (const CLI::App* child : VisibleCommands(app)) {
    std::vector<std::string> below = words;
    below.push_back(child->get_name());
    Collect(*child, below, nodes);
  }
}

// Flags of the command and those of dpar itself, which every command takes.
std::vector<std::string> AllFlags(const CLI::App& root, const CommandNode& node) {
  std::vector<std::string> flags = LongFlags(*node.app);
  if (node.app != &root) {
    const std::vector<std::string> global = LongFlags(root);
    flags.insert(flags.end(), global.begin(), global.end());
  }
  std::sort(flags.begin(), flags.end());
  flags.erase(std::unique(flags.begin(), flags.end()), flags.end());
  return flags;
}

std::string OneLine(const std::string& text) { return absl::StrReplaceAll(text, {{"\n", " "}}); }

// Within single quotes of a POSIX shell or zsh.
std::string Quoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

// Within single quotes of fish.
std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string HelpOf(const CLI::App& root, const CommandNode& node, const std::string& flag) {
  for (const CLI::App* app : {node.app, &root}) {
    if (const CLI::Option* option = app->get_option_no_throw(flag)) {
      return OneLine(option->get_description());
    }
  }
  return "";
}

// The cases of a shell function that finds where the cursor is, from the words before it.
std::string PathCases(const std::vector<CommandNode>& nodes) {
  std::vector<std::string> paths;
  for (const CommandNode& node : nodes) {
    if (!node.words.empty()) {
      paths.push_back(Quoted(node.Joined(" ")));
    }
  }
  return absl::StrJoin(paths, "|");
}

}  // namespace

std::string CommandNode::Joined(const std::string& separator) const { return absl::StrJoin(words, separator); }

std::vector<const CLI::App*> VisibleCommands(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* child : app.get_subcommands([](const CLI::App* /*any*/) { return true; })) {
    if (!child->get_group().empty()) {
      commands.push_back(child);
    }
  }
  std::sort(commands.begin(), commands.end(),
            [](const CLI::App* a, const CLI::App* b) { return a->get_name() < b->get_name(); });
  return commands;
}

std::vector<CommandNode> AllCommands(const CLI::App& root) {
  std::vector<CommandNode> nodes;
  Collect(root, {}, nodes);
  return nodes;
}

std::vector<std::string> LongFlags(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.push_back("--" + name);
    }
  }
  return flags;
}

std::string BashCompletion(const CLI::App& root) {
  const std::vector<CommandNode> nodes = AllCommands(root);
  std::string script = absl::StrCat(
      "# bash completion for dpar, made by: dpar completion bash\n"
      "_dpar() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} path='' word words\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"${path:+$path }$word\" in\n"
      "      ",
      PathCases(nodes),
      ") path=\"${path:+$path }$word\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$path\" in\n");
  for (const CommandNode& node : nodes) {
    std::vector<std::string> words;
    for (const CLI::App* child : VisibleCommands(*node.app)) {
      words.push_back(child->get_name());
    }
    absl::StrAppend(&script, "    ", Quoted(node.Joined(" ")),
                    ")\n      if [[ $current == -* ]]; then words=", Quoted(absl::StrJoin(AllFlags(root, node), " ")),
                    "; else words=", Quoted(absl::StrJoin(words, " ")), "; fi ;;\n");
  }
  absl::StrAppend(&script,
                  "  esac\n"
                  "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
                  "  if [[ ${#COMPREPLY[@]} -eq 0 && $current != -* ]]; then\n"
                  "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
                  "  fi\n"
                  "}\n"
                  "complete -o filenames -F _dpar dpar\n");
  return script;
}

// $path is the search path of zsh, so the place has another name.
std::string ZshCompletion(const CLI::App& root) {
  const std::vector<CommandNode> nodes = AllCommands(root);
  std::string script = absl::StrCat(
      "#compdef dpar\n"
      "# zsh completion for dpar, made by: dpar completion zsh\n"
      "_dpar() {\n"
      "  local place='' word\n"
      "  local -a commands flags\n"
      "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n"
      "    case \"${place:+$place }$word\" in\n"
      "      ",
      PathCases(nodes),
      ") place=\"${place:+$place }$word\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$place\" in\n");
  const auto item = [](const std::string& word, const std::string& help) {
    return Quoted(absl::StrCat(absl::StrReplaceAll(word, {{":", "\\:"}}), ":", help));
  };
  for (const CommandNode& node : nodes) {
    absl::StrAppend(&script, "    ", Quoted(node.Joined(" ")), ")\n      commands=(");
    for (const CLI::App* child : VisibleCommands(*node.app)) {
      absl::StrAppend(&script, "\n        ", item(child->get_name(), OneLine(child->get_description())));
    }
    absl::StrAppend(&script, ")\n      flags=(");
    for (const std::string& flag : AllFlags(root, node)) {
      absl::StrAppend(&script, "\n        ", item(flag, HelpOf(root, node, flag)));
    }
    absl::StrAppend(&script, ") ;;\n");
  }
  absl::StrAppend(&script,
                  "  esac\n"
                  "  if [[ ${words[CURRENT]} == -* ]]; then\n"
                  "    _describe 'option' flags\n"
                  "  elif (( ${#commands} )); then\n"
                  "    _describe 'command' commands || _files\n"
                  "  else\n"
                  "    _files\n"
                  "  fi\n"
                  "}\n"
                  "if [[ ${funcstack[1]} == _dpar ]]; then _dpar \"$@\"; else compdef _dpar dpar; fi\n");
  return script;
}

std::string FishCompletion(const CLI::App& root) {
  const std::vector<CommandNode> nodes = AllCommands(root);
  std::string script =
      "# fish completion for dpar, made by: dpar completion fish\n"
      "function __dpar_at\n"
      "  set -l path\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    switch \"$path $word\"\n"
      "      case";
  for (const CommandNode& node : nodes) {
    if (!node.words.empty()) {
      absl::StrAppend(&script, " ", FishQuoted(" " + node.Joined(" ")));
    }
  }
  absl::StrAppend(&script,
                  "\n        set path \"$path $word\"\n"
                  "    end\n"
                  "  end\n"
                  "  test \"$path\" = \"$argv[1]\"\n"
                  "end\n");
  for (const CommandNode& node : nodes) {
    const std::string place = node.words.empty() ? "" : " " + node.Joined(" ");
    const std::string condition = absl::StrCat("complete -c dpar -n ", FishQuoted("__dpar_at \"" + place + "\""));
    for (const CLI::App* child : VisibleCommands(*node.app)) {
      absl::StrAppend(&script, condition, " -f -a ", child->get_name(), " -d ",
                      FishQuoted(OneLine(child->get_description())), "\n");
    }
    for (const std::string& flag : AllFlags(root, node)) {
      absl::StrAppend(&script, condition, " -l ", flag.substr(2), " -d ", FishQuoted(HelpOf(root, node, flag)), "\n");
    }
  }
  return script;
}

}  // namespace dpar
