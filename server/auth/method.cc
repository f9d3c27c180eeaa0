#include "server/auth/method.h"

#include <algorithm>
#include <array>

namespace dpar {
namespace {

constexpr std::array kMethods = {
    Method{"DatasetService/OpenUpload", Access::kWrite, v1::UPLOAD},
    Method{"DatasetService/WriteUpload", Access::kWrite, v1::UPLOAD},
    Method{"DatasetService/GetUpload", Access::kWrite, v1::UPLOAD},
    Method{"DatasetService/FinishUpload", Access::kWrite, v1::UPLOAD},
    Method{"DatasetService/GetDataset", Access::kRead, v1::READ},
    Method{"DatasetService/ListDatasets", Access::kRead, v1::READ},
    Method{"DatasetService/DeleteDataset", Access::kAdminister, v1::ADMINISTER},
    Method{"TrainingService/CreateJob", Access::kWrite, v1::TRAIN},
    Method{"TrainingService/GetJob", Access::kRead, v1::READ},
    Method{"TrainingService/ListJobs", Access::kRead, v1::READ},
    Method{"TrainingService/CancelJob", Access::kWrite, v1::TRAIN},
    Method{"TrainingService/WatchJob", Access::kRead, v1::READ},
    Method{"TrainingService/DownloadModel", Access::kReadOwn, v1::DOWNLOAD},
    Method{"TrainingService/GetCertificate", Access::kRead, v1::DOWNLOAD},
    Method{"BudgetService/GetBudget", Access::kRead, v1::READ},
    Method{"BudgetService/ListBudgets", Access::kRead, v1::READ},
    Method{"BudgetService/ListLedgerEntries", Access::kRead, v1::READ},
    Method{"BudgetService/VerifyChain", Access::kRead, v1::READ},
    Method{"OperatorService/CreateTenant", Access::kOperate, v1::ADMINISTER},
    Method{"OperatorService/ListTenants", Access::kOperate, v1::ADMINISTER},
    Method{"OperatorService/CreateToken", Access::kManageTokens, v1::ADMINISTER},
    Method{"OperatorService/ListTokens", Access::kManageTokens, v1::ADMINISTER},
    Method{"OperatorService/RotateToken", Access::kManageTokens, v1::ADMINISTER},
    Method{"OperatorService/RevokeToken", Access::kManageTokens, v1::ADMINISTER},
    Method{"OperatorService/SetBudgetCap", Access::kOperate, v1::ADMINISTER},
    Method{"OperatorService/AdjustLedger", Access::kOperate, v1::ADMINISTER},
    Method{"ServerService/GetServerInfo", Access::kAny, v1::SCOPE_UNSPECIFIED},
    Method{"ServerService/WhoAmI", Access::kAny, v1::SCOPE_UNSPECIFIED},
    Method{"ServerService/ListSigningKeys", Access::kAny, v1::SCOPE_UNSPECIFIED},
    Method{"OverviewService/GetOverview", Access::kRead, v1::READ},
    Method{"OverviewService/ListUsage", Access::kRead, v1::READ},
    Method{"OverviewService/GetSpendHistory", Access::kRead, v1::READ},
    Method{"OverviewService/ListRecentJobs", Access::kRead, v1::READ},
    Method{"OverviewService/ListLedgerTail", Access::kRead, v1::READ},
    // No methods of the API, but of the operator's page.
    Method{"Page/OpenSession", Access::kAny, v1::SCOPE_UNSPECIFIED},
    Method{"Page/CloseSession", Access::kAny, v1::SCOPE_UNSPECIFIED},
};

}  // namespace

const Method* FindMethod(absl::string_view name) {
  const auto* const found =
      std::find_if(kMethods.begin(), kMethods.end(), [&](const Method& method) { return method.name == name; });
  return found == kMethods.end() ? nullptr : found;
}

}  // namespace dpar
