#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/labels.h"
#include "client/sdk/names.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr mode_t kSecretMode = 0600;
constexpr const char* kOperatorParent = "operator";
constexpr absl::Duration kLongestSpan = absl::Hours(24 * 36'500);

// "90d", or what absl::ParseDuration takes: "36h", "30m", "0".
absl::StatusOr<absl::Duration> ParseSpan(absl::string_view flag, absl::string_view text) {
  absl::Duration span;
  absl::string_view days = text;
  int64_t count = 0;
  const bool parsed = absl::ConsumeSuffix(&days, "d")
                          ? absl::SimpleAtoi(days, &count) && count <= kLongestSpan / absl::Hours(24)
                          : absl::ParseDuration(text, &span);
  span += absl::Hours(24) * count;
  if (!parsed || span < absl::ZeroDuration() || span > kLongestSpan) {
    return InvalidField(flag, absl::StrCat("--", flag, " must be a time such as 90d, 36h, 30m or 0, got '", text, "'"));
  }
  return span;
}

template <typename Token>
std::string ScopesText(const Token& token) {
  return token.scopes().empty() ? "all" : absl::StrJoin(ScopeLabels(token.scopes()), ",");
}

std::string ExpiryText(bool expires, const google::protobuf::Timestamp& time) {
  return expires ? FormatTime(time) : "never";
}

absl::StatusOr<int> RunWhoAmI(Session& session) {
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const v1::Identity identity, connection->WhoAmI());
  if (session.json()) {
    session.PrintJson({{"identity", ResourceJson(identity)}});
    return kDone;
  }
  session.out() << "token    " << identity.token() << "\n"
                << "tenant   " << (identity.tenant().empty() ? "none: an operator's" : identity.tenant()) << "\n"
                << "role     " << RoleLabel(identity.role()) << "\n"
                << "scopes   " << ScopesText(identity) << "\n"
                << "expires  " << ExpiryText(identity.has_expire_time(), identity.expire_time()) << "\n";
  return kDone;
}

struct TokenArguments {
  std::string tenant;
  bool is_operator = false;
  std::string role;
  std::string purpose;
  std::vector<std::string> scopes;
  std::string expires_in;
  std::string certificate_uri;
  std::string output;
};

absl::Status SetParentAndRole(const TokenArguments& arguments, v1::CreateTokenRequest& request) {
  if (arguments.is_operator) {
    if (!arguments.tenant.empty() || !arguments.role.empty()) {
      return InvalidField("operator", "--operator goes without --tenant and --role");
    }
    request.set_parent(kOperatorParent);
    request.mutable_token()->set_role(v1::OPERATOR);
    return absl::OkStatus();
  }
  if (arguments.tenant.empty() || arguments.role.empty()) {
    return InvalidField("tenant", "give --tenant ID and --role owner, member or reader; or --operator");
  }
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, TenantName(arguments.tenant));
  DPAR_ASSIGN_OR_RETURN(const v1::Role role, ParseTenantRole(arguments.role));
  request.set_parent(tenant);
  request.mutable_token()->set_role(role);
  return absl::OkStatus();
}

absl::StatusOr<v1::CreateTokenRequest> TokenRequest(const TokenArguments& arguments) {
  v1::CreateTokenRequest request;
  DPAR_RETURN_IF_ERROR(SetParentAndRole(arguments, request));
  v1::Token& token = *request.mutable_token();
  token.set_purpose(arguments.purpose);
  token.set_certificate_uri(arguments.certificate_uri);
  for (const std::string& list : arguments.scopes) {
    for (const absl::string_view text : absl::StrSplit(list, ',')) {
      DPAR_ASSIGN_OR_RETURN(const auto* const scope, ParseEnumerator("scope", *v1::Scope_descriptor(), text));
      token.add_scopes(static_cast<v1::Scope>(scope->number()));
    }
  }
  if (!arguments.expires_in.empty()) {
    DPAR_ASSIGN_OR_RETURN(const absl::Duration span, ParseSpan("expires-in", arguments.expires_in));
    token.mutable_expire_time()->set_seconds(absl::ToUnixSeconds(absl::Now() + span));
  }
  if (!arguments.certificate_uri.empty() && !arguments.output.empty()) {
    return InvalidField("output", "a token with a certificate URI has no secret to write to --output");
  }
  return request;
}

absl::StatusOr<int> ShowMade(Session& session, const v1::CreateTokenResponse& response, const std::string& output) {
  const v1::Token& token = response.token();
  if (response.secret().empty() && token.certificate_uri().empty()) {
    return absl::InternalError(absl::StrCat("the connection broke after ", token.name(),
                                            " was made, and its secret is lost. End it: dpar token revoke ",
                                            token.name(), "; then make another"));
  }
  if (!output.empty()) {
    DPAR_RETURN_IF_ERROR(WriteFileAtomically(output, response.secret() + "\n", kSecretMode));
  }
  const bool for_certificate = !token.certificate_uri().empty();
  session.err() << "made " << token.name()
                << (for_certificate ? "; it has no secret\n" : "; its secret is shown this once\n");
  if (session.json()) {
    Json json = {{"token", ResourceJson(token)}};
    if (!output.empty()) {
      json["file"] = output;
    } else if (!for_certificate) {
      json["secret"] = response.secret();
    }
    session.PrintJson(json);
  } else if (for_certificate) {
    session.out() << "for client certificates with the URI " << token.certificate_uri() << "\n";
  } else if (output.empty()) {
    session.out() << response.secret() << "\n";
  } else {
    session.out() << "wrote " << output
                  << "\nnext, for whom it is: dpar login --server HOST:PORT --ca FILE --token-file " << output << "\n";
  }
  return kDone;
}

absl::StatusOr<int> RunTokenCreate(Session& session, const TokenArguments& arguments) {
  DPAR_ASSIGN_OR_RETURN(v1::CreateTokenRequest request, TokenRequest(arguments));
  if (!arguments.output.empty()) {
    // Before the token is made: its secret cannot be had again.
    DPAR_RETURN_IF_ERROR(CheckOutputFile("output", arguments.output));
  }
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  request.set_request_id(NewRequestId(session.random()));
  DPAR_ASSIGN_OR_RETURN(const v1::CreateTokenResponse response, connection->CreateToken(request));
  return ShowMade(session, response, arguments.output);
}

absl::Status CheckTokenName(const std::string& name) {
  return IsFullName(name) ? absl::OkStatus()
                          : InvalidField("token", absl::StrCat("'", name,
                                                               "' is not a token's full name, such as "
                                                               "tenants/acme/tokens/ID: dpar token list shows them"));
}

struct RotateArguments {
  std::string name;
  std::string overlap = "1h";
  std::string output;
};

absl::StatusOr<int> RunTokenRotate(Session& session, const RotateArguments& arguments) {
  DPAR_RETURN_IF_ERROR(CheckTokenName(arguments.name));
  DPAR_ASSIGN_OR_RETURN(const absl::Duration overlap, ParseSpan("overlap", arguments.overlap));
  if (!arguments.output.empty()) {
    DPAR_RETURN_IF_ERROR(CheckOutputFile("output", arguments.output));
  }
  v1::RotateTokenRequest request;
  request.set_name(arguments.name);
  request.mutable_overlap()->set_seconds(absl::ToInt64Seconds(overlap));
  request.set_request_id(NewRequestId(session.random()));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const v1::CreateTokenResponse response, connection->RotateToken(request));
  session.err() << arguments.name
                << (overlap > absl::ZeroDuration() ? absl::StrCat(" ends in ", FormatAge(overlap)) : " has ended")
                << "\n";
  return ShowMade(session, response, arguments.output);
}

std::string TokenStanding(const v1::Token& token) {
  if (token.has_revoke_time()) {
    return "revoked";
  }
  return token.has_expire_time() && FromProto(token.expire_time()) <= absl::Now() ? "expired" : "good";
}

// Last use is known to the minute, rounded down, which must not read as a use before the token was made.
absl::Time LastUse(const v1::Token& token) {
  return std::max(FromProto(token.last_use_time()), FromProto(token.create_time()));
}

absl::StatusOr<int> RunTokenList(Session& session, const std::string& tenant) {
  std::string parent;
  if (!tenant.empty()) {
    DPAR_ASSIGN_OR_RETURN(parent, TenantName(tenant));
  } else {
    DPAR_ASSIGN_OR_RETURN(parent, session.Tenant());
  }
  if (parent.empty()) {
    parent = kOperatorParent;
  }
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const auto tokens, connection->ListTokens(parent));
  if (session.json()) {
    session.PrintJson({{"parent", parent}, {"tokens", ListJson(tokens)}});
    return kDone;
  }
  Table table({"ID", "ROLE", "STATE", "AGE", "USED", "SCOPES", "PURPOSE"}, {6, 5});
  const absl::Time now = absl::Now();
  for (const v1::Token& token : tokens) {
    table.Add({IdOf(token.name()), RoleLabel(token.role()), TokenStanding(token),
               FormatAge(now - FromProto(token.create_time())),
               token.has_last_use_time() ? FormatAge(now - LastUse(token)) : "never", ScopesText(token),
               token.purpose()});
  }
  session.out() << table.Render(session.TableWidth()) << "full names: " << parent << "/tokens/ID\n";
  return kDone;
}

absl::StatusOr<int> RunTokenRevoke(Session& session, const std::string& name) {
  DPAR_RETURN_IF_ERROR(CheckTokenName(name));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const v1::Token token, connection->RevokeToken(name));
  if (session.json()) {
    session.PrintJson({{"token", ResourceJson(token)}});
  } else {
    session.out() << token.name() << " is revoked\n";
  }
  return kDone;
}

void AddCreate(CLI::App& group, Command& chosen) {
  const auto arguments = std::make_shared<TokenArguments>();
  CLI::App* create = group.add_subcommand("create", "Make a token; its secret is shown once");
  create->add_option("--tenant", arguments->tenant, "Tenant that it belongs to");
  create->add_option("--role", arguments->role, "owner, member or reader");
  create->add_flag("--operator", arguments->is_operator, "Make an operator's token instead");
  create->add_option("--purpose", arguments->purpose, "What it is for, up to 200 characters");
  create
      ->add_option("--scope", arguments->scopes,
                   "read, upload, train, download or administer; several with commas (default: all of the role)")
      ->allow_extra_args(false);
  create->add_option("--expires-in", arguments->expires_in, "90d, 36h, 30m (default: never)");
  create->add_option("--certificate-uri", arguments->certificate_uri,
                     "For client certificates with this URI, instead of a secret; operators only");
  create->add_option("-o,--output", arguments->output, "File for the secret (mode 0600) instead of stdout");
  create->footer(Examples("  dpar token create --tenant acme --role owner -o owner.token"));
  create->callback(
      [arguments, &chosen] { chosen = [arguments](Session& s) { return RunTokenCreate(s, *arguments); }; });
}

void AddRotate(CLI::App& group, Command& chosen) {
  const auto arguments = std::make_shared<RotateArguments>();
  CLI::App* rotate = group.add_subcommand("rotate", "Make a token's successor and let the token end");
  rotate->add_option("NAME", arguments->name, "Full name of the token")->required();
  rotate->add_option("--overlap", arguments->overlap, "How long both are good, up to 30d: 7d, 36h (default: 1h)");
  rotate->add_option("-o,--output", arguments->output, "File for the secret (mode 0600) instead of stdout");
  rotate->footer(Examples("  dpar token rotate tenants/acme/tokens/ID --overlap 7d -o new.token"));
  rotate->callback(
      [arguments, &chosen] { chosen = [arguments](Session& s) { return RunTokenRotate(s, *arguments); }; });
}

}  // namespace

void AddTokenCommands(CLI::App& app, Command& chosen) {
  CLI::App* whoami = app.add_subcommand("whoami", "whom the token belongs to");
  whoami->group(kTokenGroup);
  whoami->footer(Examples("  dpar whoami"));
  whoami->callback([&chosen] { chosen = RunWhoAmI; });

  CLI::App* group = AddCommandGroup(app, "token", "create, list, rotate or revoke tokens", kTokenGroup);
  AddCreate(*group, chosen);
  const auto tenant = std::make_shared<std::string>();
  CLI::App* list = group->add_subcommand("list", "List a tenant's tokens, or the operators'");
  list->add_option("--tenant", *tenant, "Tenant (default: the token's own; of an operator's, the operators')");
  list->footer(Examples("  dpar token list --tenant acme"));
  list->callback([tenant, &chosen] { chosen = [tenant](Session& s) { return RunTokenList(s, *tenant); }; });

  AddRotate(*group, chosen);
  const auto name = std::make_shared<std::string>();
  CLI::App* revoke = group->add_subcommand("revoke", "End a token at once");
  revoke->add_option("NAME", *name, "Full name of the token")->required();
  revoke->footer(Examples("  dpar token revoke tenants/acme/tokens/ID"));
  revoke->callback([name, &chosen] { chosen = [name](Session& s) { return RunTokenRevoke(s, *name); }; });
}

}  // namespace dpar
