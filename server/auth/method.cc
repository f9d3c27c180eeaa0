#include "server/auth/method.h"

#include <algorithm>
#include <array>

namespace dpar {
namespace {

// Methods that only read are not audited.
constexpr bool kLooks = false;

constexpr std::array kMethods = {
    Method{"DatasetService/OpenUpload", Access::kWrite, v1::UPLOAD},
    Method{"DatasetService/WriteUpload", Access::kWrite, v1::UPLOAD},
    Method{"DatasetService/GetUpload", Access::kWrite, v1::UPLOAD, kLooks},
    Method{"DatasetService/FinishUpload", Access::kWrite, v1::UPLOAD},
    Method{"DatasetService/GetDataset", Access::kRead, v1::READ, kLooks},
    Method{"DatasetService/ListDatasets", Access::kRead, v1::READ, kLooks},
    Method{"DatasetService/DeleteDataset", Access::kAdminister, v1::ADMINISTER},
    Method{"TrainingService/CreateJob", Access::kWrite, v1::TRAIN},
    Method{"TrainingService/GetJob", Access::kRead, v1::READ, kLooks},
    Method{"TrainingService/ListJobs", Access::kRead, v1::READ, kLooks},
    Method{"TrainingService/CancelJob", Access::kWrite, v1::TRAIN},
    Method{"TrainingService/WatchJob", Access::kRead, v1::READ, kLooks},
    Method{"TrainingService/DownloadModel", Access::kReadOwn, v1::DOWNLOAD},
    Method{"TrainingService/GetCertificate", Access::kRead, v1::DOWNLOAD},
    Method{"BudgetService/GetBudget", Access::kRead, v1::READ, kLooks},
    Method{"BudgetService/ListBudgets", Access::kRead, v1::READ, kLooks},
    Method{"BudgetService/MergePopulation", Access::kAdminister, v1::ADMINISTER},
    Method{"BudgetService/ListLedgerEntries", Access::kRead, v1::READ, kLooks},
    Method{"BudgetService/VerifyChain", Access::kRead, v1::READ, kLooks},
    Method{"OperatorService/CreateTenant", Access::kOperate, v1::ADMINISTER},
    Method{"OperatorService/ListTenants", Access::kOperate, v1::ADMINISTER, kLooks},
    Method{"OperatorService/CreateToken", Access::kManageTokens, v1::ADMINISTER},
    Method{"OperatorService/ListTokens", Access::kManageTokens, v1::ADMINISTER, kLooks},
    Method{"OperatorService/RotateToken", Access::kManageTokens, v1::ADMINISTER},
    Method{"OperatorService/RevokeToken", Access::kManageTokens, v1::ADMINISTER},
    Method{"OperatorService/SetBudgetCap", Access::kOperate, v1::ADMINISTER},
    Method{"OperatorService/AdjustLedger", Access::kOperate, v1::ADMINISTER},
    Method{"ServerService/GetServerInfo", Access::kAny, v1::SCOPE_UNSPECIFIED, kLooks},
    Method{"ServerService/WhoAmI", Access::kAny, v1::SCOPE_UNSPECIFIED, kLooks},
    Method{"ServerService/ListSigningKeys", Access::kAny, v1::SCOPE_UNSPECIFIED, kLooks},
    Method{"OverviewService/GetOverview", Access::kRead, v1::READ, kLooks},
    Method{"OverviewService/ListUsage", Access::kRead, v1::READ, kLooks},
    Method{"OverviewService/GetSpendHistory", Access::kRead, v1::READ, kLooks},
    Method{"OverviewService/ListRecentJobs", Access::kRead, v1::READ, kLooks},
    Method{"OverviewService/ListLedgerTail", Access::kRead, v1::READ, kLooks},
    // Methods of the operator's page, not of the API.
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
