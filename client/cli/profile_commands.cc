#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/labels.h"
#include "client/sdk/profile.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr const char* kDefaultProfile = "default";

// Hides what is typed while it lives; a signal that ends the process restores the terminal. One at a time.
class HiddenInput {
 public:
  HiddenInput() {
    if (::tcgetattr(STDIN_FILENO, &before_) != 0) {
      return;
    }
    changed_ = true;
    struct sigaction ending {};
    ending.sa_handler = [](int) {
      ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
      ::_exit(kInterrupted);
    };
    ::sigaction(SIGINT, &ending, &old_interrupt_);
    ::sigaction(SIGTERM, &ending, &old_terminate_);
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  }
  ~HiddenInput() {
    if (changed_) {
      ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
      ::sigaction(SIGINT, &old_interrupt_, nullptr);
      ::sigaction(SIGTERM, &old_terminate_, nullptr);
    }
  }
  HiddenInput(const HiddenInput&) = delete;
  HiddenInput& operator=(const HiddenInput&) = delete;

 private:
  static inline termios before_{};  // static, because a signal's handler has no other place to look
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
  bool changed_ = false;
};

// From a file, typed unseen, or piped in: never from the command line, which everybody on the machine can read.
absl::StatusOr<std::string> ReadToken(Session& session) {
  std::string token;
  if (!session.settings().token_file.empty()) {
    DPAR_ASSIGN_OR_RETURN(token, ReadSmallFile("token-file", session.settings().token_file));
  } else if (session.terminal().in_is_terminal) {
    // Hide before asking, so that early typing does not show either.
    const HiddenInput hidden;
    session.err() << "Token (it does not show; your operator makes it with dpar token create): " << std::flush;
    std::getline(session.in(), token);
    session.err() << std::endl;
  } else {
    std::getline(session.in(), token);
  }
  absl::StripAsciiWhitespace(&token);
  if (token.empty()) {
    return MakeError(absl::StatusCode::kUnauthenticated, v1::TOKEN_MISSING,
                     "no token was given: type it, pipe it in, or name its file with --token-file");
  }
  return token;
}

// Whether a client certificate replaces the token. A token file or a profile as an argument precedes the environment.
bool IsByCertificate(const ConnectSettings& settings, const Variables& variables) {
  if (!settings.client_cert.empty() || !settings.client_key.empty()) {
    return true;
  }
  const auto is_set = [&](const char* variable) { return !variables(variable).value_or("").empty(); };
  return settings.token_file.empty() && settings.profile.empty() &&
         (is_set("DPAR_CLIENT_CERT") || is_set("DPAR_CLIENT_KEY"));
}

// The name to keep a login under: --name, or the profile that --profile says the command is about.
absl::StatusOr<std::string> LoginName(const std::optional<std::string>& name, const std::string& profile) {
  if (name.has_value() && !profile.empty() && *name != profile) {
    return InvalidField("name", absl::StrCat("--name ", *name, " and --profile ", profile,
                                             " name two profiles: give one of them, the one to log in to"));
  }
  std::string chosen = profile.empty() ? name.value_or(kDefaultProfile) : profile;
  DPAR_RETURN_IF_ERROR(ValidateId("name", chosen));
  return chosen;
}

absl::StatusOr<int> RunLogin(Session& session, const std::optional<std::string>& typed_name) {
  const ProfileStore store(session.variables());
  ConnectSettings settings = session.settings();
  DPAR_ASSIGN_OR_RETURN(const std::string name, LoginName(typed_name, settings.profile));
  if (!store.Load(name).ok()) {
    // The profile is about to be made.
    settings.profile.clear();
  }
  const bool by_certificate = IsByCertificate(settings, session.variables());
  // A login asks for its own token. It ignores the token of the profile and of the environment.
  settings.token_file.clear();
  std::string token;
  if (!by_certificate) {
    DPAR_ASSIGN_OR_RETURN(token, ReadToken(session));
  }
  // The profile as an argument would hide the token that was just read; as a variable it hides only the others.
  const std::string profile = std::exchange(settings.profile, "");
  const Variables variables = [&](const std::string& variable) -> std::optional<std::string> {
    if (variable == "DPAR_TOKEN") {
      return by_certificate ? std::nullopt : std::optional(token);
    }
    if (!by_certificate && absl::StartsWith(variable, "DPAR_CLIENT_")) {
      return std::nullopt;
    }
    if (!profile.empty() && absl::StartsWith(variable, "DPAR_")) {
      return variable == "DPAR_PROFILE" ? std::optional(profile) : std::nullopt;
    }
    return variable == "DPAR_TOKEN_FILE" ? std::nullopt : session.variables()(variable);
  };
  DPAR_ASSIGN_OR_RETURN(ConnectOptions options, ResolveConnection(settings, variables));
  // The current profile's token or certificate belongs to another login.
  options.token = token;
  if (!by_certificate) {
    options.client_certificate_pem.clear();
    options.client_key_pem.clear();
  }
  DPAR_ASSIGN_OR_RETURN(const v1::Identity identity, Connection::Open(options)->WhoAmI());
  DPAR_RETURN_IF_ERROR(store.Save(
      name, {options.server, options.ca_pem, options.token, options.client_certificate_pem, options.client_key_pem}));
  DPAR_RETURN_IF_ERROR(store.Use(name));
  if (session.json()) {
    session.PrintJson({{"profile", name}, {"server", options.server}, {"identity", ResourceJson(identity)}});
    return kDone;
  }
  session.out() << "logged in to " << options.server << " as "
                << (identity.tenant().empty() ? "an operator"
                                              : absl::StrCat(RoleLabel(identity.role()), " of ", identity.tenant()))
                << "\n"
                << "profile '" << name << "' is in " << store.directory() << ", and is the current one\n"
                << "next: " << (identity.tenant().empty() ? "dpar tenant create ID" : "dpar upload FILE, dpar datasets")
                << "\n";
  return kDone;
}

absl::StatusOr<int> RunProfileList(Session& session) {
  const ProfileStore store(session.variables());
  const std::string current = store.Current();
  Json list = Json::array();
  Table table({"", "PROFILE", "SERVER"}, {2, 1});
  for (const std::string& name : store.List()) {
    DPAR_ASSIGN_OR_RETURN(const Profile profile, store.Load(name));
    list.push_back({{"name", name}, {"server", profile.server}, {"current", name == current}});
    table.Add({name == current ? "*" : "", name, profile.server});
  }
  if (session.json()) {
    session.PrintJson({{"profiles", list}, {"current", current}});
  } else if (list.empty()) {
    session.out() << "no profiles yet\nnext: dpar login --server HOST:PORT --ca FILE\n";
  } else {
    session.out() << table.Render(session.TableWidth());
  }
  return kDone;
}

absl::StatusOr<int> RunProfileShow(Session& session, const std::string& typed) {
  const ProfileStore store(session.variables());
  const std::string name = typed.empty() ? store.Current() : typed;
  if (name.empty()) {
    return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND, "no profile is the current one",
                     {{"profile", ""}});
  }
  DPAR_ASSIGN_OR_RETURN(const Profile profile, store.Load(name));
  const bool by_certificate = !profile.client_certificate_pem.empty();
  if (session.json()) {
    session.PrintJson({{"profile", name},
                       {"server", profile.server},
                       {"current", name == store.Current()},
                       {"by", by_certificate ? "certificate" : "token"},
                       {"directory", absl::StrCat(store.directory(), "/profiles/", name)}});
    return kDone;
  }
  session.out() << "profile  " << name << (name == store.Current() ? " (current)" : "") << "\n"
                << "server   " << profile.server << "\n"
                << "by       " << (by_certificate ? "a client certificate" : "a token, which is not shown") << "\n"
                << "files    " << store.directory() << "/profiles/" << name << "\n"
                << "next     dpar whoami\n";
  return kDone;
}

absl::StatusOr<int> RunProfileUse(Session& session, const std::string& name) {
  const ProfileStore store(session.variables());
  DPAR_RETURN_IF_ERROR(store.Use(name));
  if (session.json()) {
    session.PrintJson({{"current", name}});
  } else {
    session.out() << "'" << name << "' is the current profile\n";
  }
  return kDone;
}

absl::StatusOr<int> RunProfileRemove(Session& session, const std::string& name) {
  const ProfileStore store(session.variables());
  DPAR_RETURN_IF_ERROR(store.Remove(name));
  if (session.json()) {
    session.PrintJson({{"removed", name}});
  } else {
    session.out() << "removed '" << name << "'; its token is good until it is revoked: dpar token revoke\n";
  }
  return kDone;
}

void AddNamed(CLI::App& group, const std::string& name, const std::string& description, const std::string& example,
              bool required, absl::StatusOr<int> (*run)(Session&, const std::string&), Command& chosen) {
  const auto profile = std::make_shared<std::string>();
  CLI::App* command = group.add_subcommand(name, description);
  CLI::Option* option = command->add_option("NAME", *profile, "Name of the profile");
  option->required(required);
  command->footer(Examples(example));
  command->callback([profile, run, &chosen] { chosen = [profile, run](Session& s) { return run(s, *profile); }; });
}

}  // namespace

void AddProfileCommands(CLI::App& app, Command& chosen) {
  const auto name = std::make_shared<std::optional<std::string>>();
  CLI::App* login = app.add_subcommand("login", "Check a server and a token, and keep them as a profile");
  login->group(kStartGroup);
  login->add_option("--name", *name, "Name of the profile (default: that of --profile,\nelse default)");
  login->footer(
      Examples("  dpar login --server 127.0.0.1:7443 --ca ca.pem\n"
               "  dpar login --server 127.0.0.1:7443 --ca ca.pem --token-file owner.token --name work\n"
               "The token is typed unseen, piped in, or in --token-file; never on the command line."));
  login->callback([name, &chosen] { chosen = [name](Session& s) { return RunLogin(s, *name); }; });

  CLI::App* group = AddCommandGroup(app, "profile", "list, show, use or remove what login kept", kStartGroup);
  CLI::App* list = group->add_subcommand("list", "List the profiles");
  list->footer(Examples("  dpar profile list"));
  list->callback([&chosen] { chosen = RunProfileList; });
  AddNamed(*group, "show", "Show a profile, the current one when none is named", "  dpar profile show", false,
           RunProfileShow, chosen);
  AddNamed(*group, "use", "Make a profile the current one", "  dpar profile use work", true, RunProfileUse, chosen);
  AddNamed(*group, "remove", "Forget a profile and its token", "  dpar profile remove work", true, RunProfileRemove,
           chosen);
}

}  // namespace dpar
