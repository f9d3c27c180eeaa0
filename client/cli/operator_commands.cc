// dpar tenant create | list, dpar token create | list | revoke.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/labels.h"
#include "client/sdk/atomic_file.h"
#include "client/sdk/names.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr mode_t kSecretMode = 0600;
constexpr const char* kOperatorParent = "operator";

absl::StatusOr<int> RunTenantCreate(Session& session, const std::string& id) {
  DPAR_RETURN_IF_ERROR(ValidateId("tenant", id));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  v1::CreateTenantRequest request;
  request.set_tenant_id(id);
  request.set_request_id(NewRequestId(session.random()));
  DPAR_ASSIGN_OR_RETURN(const v1::Tenant tenant, connection->CreateTenant(request));
  if (session.json()) {
    session.PrintJson({{"tenant", TenantJson(tenant)}});
    return kDone;
  }
  session.out() << "made " << tenant.name() << "\n"
                << "next: dpar token create --tenant " << id << " --role owner -o owner.token\n";
  return kDone;
}

absl::StatusOr<int> RunTenantList(Session& session) {
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const auto tenants, connection->ListTenants());
  if (session.json()) {
    Json list = Json::array();
    for (const v1::Tenant& tenant : tenants) {
      list.push_back(TenantJson(tenant));
    }
    session.PrintJson({{"tenants", list}});
    return kDone;
  }
  if (tenants.empty()) {
    session.out() << "no tenants yet\nnext: dpar tenant create ID\n";
    return kDone;
  }
  Table table({"TENANT", "AGE"}, {0});
  for (const v1::Tenant& tenant : tenants) {
    table.Add({IdOf(tenant.name()), FormatAge(absl::Now() - FromProto(tenant.create_time()))});
  }
  session.out() << table.Render(session.TableWidth());
  return kDone;
}

struct TokenArguments {
  std::string tenant;
  bool is_operator = false;
  std::string role;
  std::string purpose;
  std::string output;
};

absl::StatusOr<v1::CreateTokenRequest> TokenRequest(const TokenArguments& arguments) {
  v1::CreateTokenRequest request;
  request.mutable_token()->set_purpose(arguments.purpose);
  if (arguments.is_operator) {
    if (!arguments.tenant.empty() || !arguments.role.empty()) {
      return InvalidField("operator", "--operator goes without --tenant and --role");
    }
    request.set_parent(kOperatorParent);
    request.mutable_token()->set_role(v1::OPERATOR);
    return request;
  }
  if (arguments.tenant.empty() || arguments.role.empty()) {
    return InvalidField("tenant", "give --tenant ID and --role owner, member or reader; or --operator");
  }
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, TenantName(arguments.tenant));
  DPAR_ASSIGN_OR_RETURN(const v1::Role role, ParseTenantRole(arguments.role));
  request.set_parent(tenant);
  request.mutable_token()->set_role(role);
  return request;
}

absl::StatusOr<int> RunTokenCreate(Session& session, const TokenArguments& arguments) {
  DPAR_ASSIGN_OR_RETURN(const v1::CreateTokenRequest request, TokenRequest(arguments));
  if (!arguments.output.empty()) {
    // Before the token is made: its secret cannot be had again.
    DPAR_RETURN_IF_ERROR(CheckOutputFile("output", arguments.output));
  }
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const v1::CreateTokenResponse response, connection->CreateToken(request));
  if (!arguments.output.empty()) {
    DPAR_RETURN_IF_ERROR(WriteFileAtomically(arguments.output, response.secret() + "\n", kSecretMode));
  }
  session.err() << "made " << response.token().name() << "; its secret is shown this once\n";
  if (session.json()) {
    Json json = {{"token", TokenJson(response.token())}};
    if (arguments.output.empty()) {
      json["secret"] = response.secret();
    } else {
      json["file"] = arguments.output;
    }
    session.PrintJson(json);
    return kDone;
  }
  if (arguments.output.empty()) {
    session.out() << response.secret() << "\n";
    return kDone;
  }
  session.out() << "wrote " << arguments.output << "\nnext: export DPAR_TOKEN_FILE=" << arguments.output << "\n";
  return kDone;
}

std::string TokenStanding(const v1::Token& token) {
  if (token.has_revoke_time()) {
    return "revoked";
  }
  return token.has_expire_time() && FromProto(token.expire_time()) <= absl::Now() ? "expired" : "good";
}

absl::StatusOr<int> RunTokenList(Session& session, const std::string& tenant) {
  std::string parent = kOperatorParent;
  if (!tenant.empty()) {
    DPAR_ASSIGN_OR_RETURN(parent, TenantName(tenant));
  }
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const auto tokens, connection->ListTokens(parent));
  if (session.json()) {
    Json list = Json::array();
    for (const v1::Token& token : tokens) {
      list.push_back(TokenJson(token));
    }
    session.PrintJson({{"parent", parent}, {"tokens", list}});
    return kDone;
  }
  Table table({"TOKEN", "ROLE", "STATE", "AGE", "PURPOSE"}, {4, 0});
  for (const v1::Token& token : tokens) {
    table.Add({token.name(), RoleLabel(token.role()), TokenStanding(token),
               FormatAge(absl::Now() - FromProto(token.create_time())), token.purpose()});
  }
  session.out() << table.Render(session.TableWidth());
  return kDone;
}

absl::StatusOr<int> RunTokenRevoke(Session& session, const std::string& name) {
  if (!IsFullName(name)) {
    return InvalidField("token", absl::StrCat("'", name, "' is not a token's full name: dpar token list shows them"));
  }
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const v1::Token token, connection->RevokeToken(name));
  if (session.json()) {
    session.PrintJson({{"token", TokenJson(token)}});
  } else {
    session.out() << token.name() << " is revoked\n";
  }
  return kDone;
}

CLI::App* AddGroup(CLI::App& app, const std::string& name, const std::string& description) {
  CLI::App* group = app.add_subcommand(name, description);
  group->group(kOperatorGroup);
  group->require_subcommand(1);
  group->fallthrough();
  group->footer(absl::StrCat("dpar ", name, " COMMAND --help shows the options and an example."));
  return group;
}

void AddTenantCommands(CLI::App& app, Command& chosen) {
  CLI::App* group = AddGroup(app, "tenant", "create or list tenants");
  const auto id = std::make_shared<std::string>();
  CLI::App* create = group->add_subcommand("create", "Make a tenant");
  create->add_option("ID", *id, "1 to 63 characters of a-z, 0-9 and '-'")->required();
  create->footer(Examples("  dpar tenant create acme"));
  create->callback([id, &chosen] { chosen = [id](Session& s) { return RunTenantCreate(s, *id); }; });

  CLI::App* list = group->add_subcommand("list", "List the tenants");
  list->footer(Examples("  dpar tenant list"));
  list->callback([&chosen] { chosen = RunTenantList; });
}

void AddTokenCommands(CLI::App& app, Command& chosen) {
  CLI::App* group = AddGroup(app, "token", "create, list or revoke tokens");
  const auto arguments = std::make_shared<TokenArguments>();
  CLI::App* create = group->add_subcommand("create", "Make a token; its secret is shown once");
  create->add_option("--tenant", arguments->tenant, "Tenant that it belongs to");
  create->add_option("--role", arguments->role, "owner, member or reader");
  create->add_flag("--operator", arguments->is_operator, "Make an operator's token instead");
  create->add_option("--purpose", arguments->purpose, "What it is for, up to 200 characters");
  create->add_option("-o,--output", arguments->output, "File for the secret (mode 0600) instead of stdout");
  create->footer(Examples("  dpar token create --tenant acme --role owner -o owner.token"));
  create->callback(
      [arguments, &chosen] { chosen = [arguments](Session& s) { return RunTokenCreate(s, *arguments); }; });

  const auto tenant = std::make_shared<std::string>();
  CLI::App* list = group->add_subcommand("list", "List a tenant's tokens, or the operators'");
  list->add_option("--tenant", *tenant, "Tenant (default: the operators' tokens)");
  list->footer(Examples("  dpar token list --tenant acme"));
  list->callback([tenant, &chosen] { chosen = [tenant](Session& s) { return RunTokenList(s, *tenant); }; });

  const auto name = std::make_shared<std::string>();
  CLI::App* revoke = group->add_subcommand("revoke", "End a token at once");
  revoke->add_option("NAME", *name, "Full name of the token")->required();
  revoke->footer(Examples("  dpar token revoke tenants/acme/tokens/ID"));
  revoke->callback([name, &chosen] { chosen = [name](Session& s) { return RunTokenRevoke(s, *name); }; });
}

}  // namespace

void AddOperatorCommands(CLI::App& app, Command& chosen) {
  AddTenantCommands(app, chosen);
  AddTokenCommands(app, chosen);
}

}  // namespace dpar
