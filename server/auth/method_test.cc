#include "server/auth/method.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "dpar/v1/budget.pb.h"
#include "dpar/v1/dataset.pb.h"
#include "dpar/v1/operator.pb.h"
#include "dpar/v1/overview.pb.h"
#include "dpar/v1/server.pb.h"
#include "dpar/v1/training.pb.h"

namespace dpar {
namespace {

TEST(FindMethodTest, EveryMethodOfTheApiHasARow) {
  std::set<std::string> names;
  for (const google::protobuf::FileDescriptor* file :
       {v1::Dataset::descriptor()->file(), v1::Job::descriptor()->file(), v1::Budget::descriptor()->file(),
        v1::Tenant::descriptor()->file(), v1::ServerInfo::descriptor()->file(), v1::Overview::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      const google::protobuf::ServiceDescriptor& service = *file->service(s);
      for (int m = 0; m < service.method_count(); ++m) {
        const std::string name = service.name() + "/" + service.method(m)->name();
        const Method* const method = FindMethod(name);
        ASSERT_NE(method, nullptr) << name;
        EXPECT_EQ(method->name, name);
        EXPECT_EQ(method->access == Access::kAny, method->scope == v1::SCOPE_UNSPECIFIED) << name;
        EXPECT_TRUE(names.insert(name).second) << name;
      }
    }
  }
  EXPECT_EQ(names.size(), 34U);
}

TEST(FindMethodTest, WhatIsNoMethodHasNone) {
  for (const char* name :
       {"", "WhoAmI", "ServerService/whoami", "ServerService/WhoAmI ", "dpar.v1.ServerService/WhoAmI"}) {
    EXPECT_EQ(FindMethod(name), nullptr) << name;
  }
}

// A method that is added to the API fails here until it is in one of the two lists.
TEST(IsAuditedTest, CallsThatChangeOrHandOutSomethingAreAndOthersAreNot) {
  const std::set<std::string> audited = {
      "DatasetService/OpenUpload",     "DatasetService/WriteUpload",     "DatasetService/FinishUpload",
      "DatasetService/DeleteDataset",  "TrainingService/CreateJob",      "TrainingService/CancelJob",
      "TrainingService/DownloadModel", "TrainingService/GetCertificate", "OperatorService/CreateTenant",
      "OperatorService/CreateToken",   "OperatorService/RotateToken",    "OperatorService/RevokeToken",
      "OperatorService/SetBudgetCap",  "OperatorService/AdjustLedger",
  };
  std::set<std::string> found;
  for (const google::protobuf::FileDescriptor* file :
       {v1::Budget::descriptor()->file(), v1::Dataset::descriptor()->file(), v1::Tenant::descriptor()->file(),
        v1::ServerInfo::descriptor()->file(), v1::Job::descriptor()->file()}) {
    for (int s = 0; s < file->service_count(); ++s) {
      for (int m = 0; m < file->service(s)->method_count(); ++m) {
        const std::string method = file->service(s)->name() + "/" + file->service(s)->method(m)->name();
        if (IsAudited(method)) {
          found.insert(method);
        }
      }
    }
  }
  EXPECT_EQ(found, audited);
  EXPECT_TRUE(IsAudited("NewService/Anything"));
}

}  // namespace
}  // namespace dpar
