#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/sdk/names.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

absl::StatusOr<int> RunTenantCreate(Session& session, const std::string& id) {
  DPAR_RETURN_IF_ERROR(ValidateId("tenant", id));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  v1::CreateTenantRequest request;
  request.set_tenant_id(id);
  request.set_request_id(NewRequestId(session.random()));
  DPAR_ASSIGN_OR_RETURN(const v1::Tenant tenant, connection->CreateTenant(request));
  if (session.json()) {
    session.PrintJson({{"tenant", ResourceJson(tenant)}});
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
    session.PrintJson({{"tenants", ListJson(tenants)}});
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

}  // namespace

void AddOperatorCommands(CLI::App& app, Command& chosen) {
  CLI::App* group = AddCommandGroup(app, "tenant", "create or list tenants", kOperatorGroup);
  const auto id = std::make_shared<std::string>();
  CLI::App* create = group->add_subcommand("create", "Make a tenant");
  create->add_option("ID", *id, "1 to 63 characters of a-z, 0-9 and '-'")->required();
  create->footer(Examples("  dpar tenant create acme"));
  create->callback([id, &chosen] { chosen = [id](Session& s) { return RunTenantCreate(s, *id); }; });

  CLI::App* list = group->add_subcommand("list", "List the tenants");
  list->footer(Examples("  dpar tenant list"));
  list->callback([&chosen] { chosen = RunTenantList; });
}

}  // namespace dpar
