#include "server/auth/method.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "dpar/v1/budget.pb.h"
#include "dpar/v1/dataset.pb.h"
#include "dpar/v1/operator.pb.h"
#include "dpar/v1/overview.pb.h"
#include "dpar/v1/server.pb.h"
#include "dpar/v1/training.pb.h"

namespace dpar {
namespace {

// Of the API, "Service/Method".
std::vector<std::string> MethodNames() {
  std::vector<std::string> names;
  for (const google::protobuf::FileDescriptor* file :
       {v1::Dataset::descriptor()->file(), v1::Job::descriptor()->file(), v1::Budget::descriptor()->file(),
        v1::Tenant::descriptor()->file(), v1::ServerInfo::descriptor()->file(), v1::Overview::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      const google::protobuf::ServiceDescriptor& service = *file->service(s);
      for (int m = 0; m < service.method_count(); ++m) {
        names.push_back(service.name() + "/" + service.method(m)->name());
      }
    }
  }
  return names;
}

TEST(FindMethodTest, EveryMethodOfTheApiHasARow) {
  EXPECT_EQ(MethodNames().size(), 35U);
  for (const std::string& name : MethodNames()) {
    const Method* const method = FindMethod(name);
    ASSERT_NE(method, nullptr) << name;
    EXPECT_EQ(method->name, name);
    EXPECT_EQ(method->access == Access::kAny, method->scope == v1::SCOPE_UNSPECIFIED) << name;
  }
}

TEST(FindMethodTest, CallsThatChangeOrHandOutSomethingAreAudited) {
  const std::set<std::string> audited = {
      "DatasetService/OpenUpload",     "DatasetService/WriteUpload",     "DatasetService/FinishUpload",
      "DatasetService/DeleteDataset",  "TrainingService/CreateJob",      "TrainingService/CancelJob",
      "TrainingService/DownloadModel", "TrainingService/GetCertificate", "OperatorService/CreateTenant",
      "OperatorService/CreateToken",   "OperatorService/RotateToken",    "OperatorService/RevokeToken",
      "OperatorService/SetBudgetCap",  "OperatorService/AdjustLedger",   "BudgetService/MergePopulation",
  };
  for (const std::string& name : MethodNames()) {
    EXPECT_EQ(FindMethod(name)->audited, audited.contains(name)) << name;
  }
  EXPECT_TRUE(FindMethod("Page/OpenSession")->audited);
  EXPECT_TRUE(FindMethod("Page/CloseSession")->audited);
}

TEST(FindMethodTest, WhatIsNoMethodHasNone) {
  for (const char* name :
       {"", "WhoAmI", "ServerService/whoami", "ServerService/WhoAmI ", "dpar.v1.ServerService/WhoAmI"}) {
    EXPECT_EQ(FindMethod(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace dpar
