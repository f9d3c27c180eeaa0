// Verifying recomputes plan, event, price and ledger entry, and refuses what differs.
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/certificate/digest.h"
#include "core/certificate/ledger_entry.h"
#include "core/certificate/testing/certificate_fixture.h"
#include "core/certificate/testing/example_statement.h"
#include "core/error.h"
#include "core/message_json.h"
#include "core/plan/plan_event.h"
#include "core/privacy/accountant.h"
#include "core/privacy/budget.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::CertificateTest;
using testing::ExpectOnlyFailure;
using testing::Find;
using testing::FullSpec;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

TEST_F(CertificateTest, ARevokedKeyIsReportedBesideEveryOtherCheck) {
  KnownKey known = key_.verifying_key();
  known.retire_time = absl::FromUnixSeconds(1767323045);
  const std::string envelope = SignStatement(ExampleStatement(), key_).value();
  const Verification retired = VerifyCertificate(envelope, {known}, {npz_}).value();
  EXPECT_TRUE(retired.passed());
  EXPECT_THAT(Find(retired, "signature")->detail, HasSubstr("in use until 2026-01-02T03:04:05Z"));
  EXPECT_EQ(Find(retired, "key"), nullptr);
  known.revoke_time = absl::FromUnixSeconds(1767323046);
  known.revoke_reason = "the disk was sold";
  const Verification revoked = VerifyCertificate(envelope, {known}, {npz_}).value();
  ExpectOnlyFailure(revoked, "key", "revoked on 2026-01-02T03:04:06Z: the disk was sold; somebody else may");
  EXPECT_EQ(revoked.checks.size(), retired.checks.size() + 1);
  EXPECT_TRUE(OpenSigned(envelope, {known}).ok());
}

TEST_F(CertificateTest, EveryChangedFieldSignedByAStrangerIsRefused) {
  const SigningKey stranger = SigningKey::Generate().value();
  const Json json = Json::parse(StatementToJson(ExampleStatement(FullSpec())));
  const Json fields = json.flatten();
  size_t changed = 0;
  for (const auto& [path, value] : fields.items()) {
    Json altered = json;
    Json& field = altered[Json::json_pointer(path)];
    field = value.is_string() ? Json(value.get<std::string>() + "x") : value.is_number() ? Json(7.5) : Json("x");
    const std::string payload = altered.dump();
    const Verification unknown = VerifyCertificate(SignPayload(payload, stranger), trusted(), {}).value();
    ASSERT_EQ(unknown.checks.size(), 1U) << path;
    ExpectOnlyFailure(unknown, "signature", "not trusted");
    Json claimed = Json::parse(SignPayload(payload, stranger));
    claimed["signatures"][0]["keyid"] = key_.verifying_key().key_id();
    ExpectOnlyFailure(VerifyCertificate(claimed.dump(), trusted(), {}).value(), "signature", "not a signature of key");
    ++changed;
  }
  EXPECT_GT(changed, 120U);
}

TEST_F(CertificateTest, EveryMethodIsRecomputed) {
  const struct {
    std::string name;
    std::function<void(v1::TrainingSpec&)> set;
  } kCases[] = {
      {"batches", [](v1::TrainingSpec& s) { s.mutable_options()->set_batch_size(300); }},
      {"a hidden layer", [](v1::TrainingSpec& s) { s.mutable_options()->set_hidden_size(8); }},
      {"a sample of nodes", [](v1::TrainingSpec& s) { s.mutable_options()->set_node_sampling_rate(0.5); }},
      {"a private mean", [](v1::TrainingSpec& s) { s.mutable_options()->set_center(true); }},
      {"an evaluation",
       [](v1::TrainingSpec& s) {
         s.mutable_evaluation()->set_held_out_share(0.2);
         s.mutable_evaluation()->set_budget_share(0.1);
       }},
      {"EM0", [](v1::TrainingSpec& s) { s.set_method(v1::DPAR_EM0); }},
      {"EM1", [](v1::TrainingSpec& s) { s.set_method(v1::DPAR_EM1); }},
      {"GM", [](v1::TrainingSpec& s) { s.set_method(v1::DPAR_GM); }},
      {"GM, its rows only, on a sample, in batches",
       [](v1::TrainingSpec& s) {
         s.set_method(v1::DPAR_GM);
         s.mutable_options()->set_rows(v1::APPR_ONLY);
         s.mutable_options()->set_node_sampling_rate(0.5);
         s.mutable_options()->set_batch_size(10);
       }},
      {"the published epsilon beside it",
       [](v1::TrainingSpec& s) {
         s.set_method(v1::DPAR_GM);
         s.set_accountant(v1::AS_PUBLISHED);
         s.mutable_options()->set_shift(false);
         s.mutable_options()->set_batch_size(300);
       }},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.name);
    v1::TrainingSpec spec = ExampleSpec();
    test.set(spec);
    const Verification verification = Verify(ExampleStatement(spec));
    for (const Check& check : verification.checks) {
      EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
    }
    EXPECT_TRUE(verification.passed());
    EXPECT_LE(verification.recomputed_epsilon, 1 + 1e-9);
    EXPECT_GT(verification.recomputed_epsilon, 0.99);
  }
}

TEST_F(CertificateTest, EveryChangedNumberOfThePlanIsRefused) {
  // The price does not depend on what is done with the noisy sums afterwards, on the shares that noise was calibrated
  // by, or on a solver whose rows are clipped. The held-out share counts through the slots that it rounds to. Epsilon
  // and delta have a check of their own.
  const std::set<std::string> free = {"/epsilon",
                                      "/delta",
                                      "/learning_rate",
                                      "/momentum",
                                      "/logit_noise",
                                      "/structure/share",
                                      "/structure/rho",
                                      "/structure/alpha",
                                      "/structure/gamma",
                                      "/structure/column_clip",
                                      "/evaluation/held_out_share"};
  const Statement statement = ExampleStatement(FullSpec());
  const Json plan = MessageToJson(statement.plan, {"event", "price_units", "left_units"});
  const Json numbers = plan.flatten();
  size_t checked = 0;
  for (const auto& [path, value] : numbers.items()) {
    if (!value.is_number() || free.contains(path)) {
      continue;
    }
    std::vector<Json> others = {value.get<double>() * (1 + 1e-9) + 1e-300, value.get<double>() * (1 - 1e-9) - 1e-300};
    if (value.is_number_integer()) {
      others = {value.get<int64_t>() + 1, value.get<int64_t>() - 1};
    }
    for (const Json& other : others) {
      SCOPED_TRACE(path + " " + other.dump());
      Json changed = plan;
      changed[Json::json_pointer(path)] = other;
      Statement altered = statement;
      v1::Plan altered_plan;
      ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(changed.dump(), &altered_plan).ok());
      *altered_plan.mutable_event() = statement.plan.event();
      altered.plan = altered_plan;
      altered.evaluation->set_held_out_slots(altered_plan.evaluation().held_out_slots());
      ExpectOnlyFailure(Verify(altered), "mechanism", "");
      ++checked;
    }
  }
  EXPECT_GE(checked, 2U * 20);
}

TEST_F(CertificateTest, AnEventThatDoesNotFollowFromThePlanIsRefused) {
  const struct {
    std::string detail;
    std::function<void(v1::Plan&)> spoil;
  } kCases[] = {
      {"not the one that follows", [](v1::Plan& p) { p.set_noise_multiplier(p.noise_multiplier() * (1 - 1e-9)); }},
      {"not the one that follows", [](v1::Plan& p) { p.set_steps(96); }},
      {"lattice_bits", [](v1::Plan& p) { p.set_lattice_bits(30); }},
      {"summation_error", [](v1::Plan& p) { p.clear_structure(), p.set_rows_per_node(1); }},
      {"not the one that follows", [](v1::Plan& p) { p.clear_mean(); }},
      {"no event", [](v1::Plan& p) { p.set_noise_multiplier(0); }},
      {"no event", [](v1::Plan& p) { p.mutable_mean()->set_noise_stddev(-1); }},
      {"no event", [](v1::Plan& p) { p.set_method(v1::FEATURES); }},
      {"rows_per_node", [](v1::Plan& p) { p.mutable_structure()->set_max_occurrence(2); }},
      {"rows_per_node", [](v1::Plan& p) { p.set_rows_per_node(1); }},
      {"sampling_rate", [](v1::Plan& p) { p.set_sampling_rate(0.5); }},
      {"sampling_rate", [](v1::Plan& p) { p.mutable_structure()->set_rows(v1::APPR_ONLY); }},
      {"summation_error", [](v1::Plan& p) { p.set_summation_error(0); }},
      {"class_shares.summation_error", [](v1::Plan& p) { p.mutable_class_shares()->set_summation_error(0); }},
      {"not the one that follows", [](v1::Plan& p) { p.clear_class_shares(); }},
      {"mean.summation_error", [](v1::Plan& p) { p.mutable_mean()->set_summation_error(0); }},
      {"unit length", [](v1::Plan& p) { p.set_transform(v1::RAW); }},
      {"held_out_slots", [](v1::Plan& p) { p.mutable_evaluation()->set_held_out_share(0.5); }},
      {"SOUND", [](v1::Plan& p) { p.set_accountant(v1::AS_PUBLISHED); }},
      {"SOUND", [](v1::Plan& p) { p.set_published_epsilon(0.1); }},
      {"SOUND", [](v1::Plan& p) { p.set_accountant(v1::ACCOUNTANT_UNSPECIFIED); }},
      {"out of range", [](v1::Plan& p) { p.set_training_slots(int64_t{1} << 62); }},
      {"out of range", [](v1::Plan& p) { p.set_hidden_size(int64_t{1} << 62); }},
      {"out of range", [](v1::Plan& p) { p.mutable_structure()->set_top_k(int64_t{1} << 62); }},
      {"out of range", [](v1::Plan& p) { p.mutable_structure()->set_appr_nodes(0); }},
      {"out of range", [](v1::Plan& p) { p.mutable_structure()->set_max_occurrence(int64_t{1} << 62); }},
      {"out of range", [](v1::Plan& p) { p.mutable_evaluation()->set_held_out_share(1e300); }},
  };
  const Statement example = ExampleStatement(FullSpec());
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.detail);
    Statement statement = example;
    test.spoil(statement.plan);
    ExpectOnlyFailure(Verify(statement), "mechanism", test.detail);
  }
}

TEST_F(CertificateTest, SlotsThatAreNeitherTrainedOnNorHeldOutAreRefused) {
  Statement statement = ExampleStatement();
  statement.sizes.node_count += 1;
  ExpectOnlyFailure(Verify(statement), "mechanism", "training and held-out slots are not all slots");
}

TEST_F(CertificateTest, ASensitivityThatForgetsTheLatticeIsRefused) {
  Statement statement = ExampleStatement();
  v1::StageEvent& stage = *statement.plan.mutable_event()->mutable_composition()->mutable_events(0)->mutable_stage();
  ASSERT_EQ(stage.name(), kTrainingStage);
  stage.mutable_event()->mutable_gaussian()->set_sensitivity(statement.plan.gradient_clip());
  Reprice(statement);
  statement.accountant_epsilon = EventEpsilon(statement.plan.event(), statement.plan.delta()).value();
  ExpectOnlyFailure(Verify(statement), "mechanism", "not the one that follows");
}

TEST_F(CertificateTest, AnEventWithoutOneOfItsStagesIsRefused) {
  Statement statement = ExampleStatement(FullSpec());
  statement.plan.mutable_event()->mutable_composition()->mutable_events()->RemoveLast();
  Reprice(statement);
  statement.accountant_epsilon = EventEpsilon(statement.plan.event(), statement.plan.delta()).value();
  ExpectOnlyFailure(Verify(statement), "mechanism", "not the one that follows");
}

TEST_F(CertificateTest, AnEventOutOfRangeIsRefused) {
  for (const double bad : {0.0, -1.0}) {
    Statement statement = ExampleStatement();
    statement.plan.mutable_event()
        ->mutable_composition()
        ->mutable_events(0)
        ->mutable_stage()
        ->mutable_event()
        ->mutable_gaussian()
        ->set_noise_stddev(bad);
    EXPECT_FALSE(Verify(statement).passed());
  }
}

TEST_F(CertificateTest, ThePapersNoiseIsCertifiedAtItsSoundCost) {
  v1::TrainingSpec spec;
  spec.set_epsilon(0.5);
  spec.set_method(v1::FEATURES);
  spec.set_preset(v1::PAPER);
  Statement statement = ExampleStatement(spec);
  EXPECT_NEAR(statement.plan.published_epsilon(), 0.5, 1e-6);
  EXPECT_GT(statement.plan.epsilon(), 0.5);
  const Verification verification = Verify(statement);
  EXPECT_TRUE(Find(verification, "mechanism")->passed) << Find(verification, "mechanism")->detail;
  EXPECT_TRUE(Find(verification, "epsilon")->passed) << Find(verification, "epsilon")->detail;
  statement.plan.set_epsilon(statement.plan.published_epsilon());
  RehashEntry(statement);
  ExpectOnlyFailure(Verify(statement), "epsilon", "understates");
}

TEST_F(CertificateTest, ALedgerEntryThatChargedAnotherPriceIsRefused) {
  Statement statement = ExampleStatement();
  statement.units -= 1;
  RehashEntry(statement);
  ExpectOnlyFailure(Verify(statement), "ledger", "the ledger charged");
  statement.units += 2;
  RehashEntry(statement);
  ExpectOnlyFailure(Verify(statement), "ledger", "the ledger charged");
}

TEST_F(CertificateTest, SaysWhatWasUsedOfTheCap) {
  Statement statement = ExampleStatement();
  EXPECT_THAT(Find(Verify(statement), "ledger")->detail,
              HasSubstr(absl::StrCat("; 1234567 of ", statement.cap_units, " units were used before, ",
                                     1234567 + statement.units, " after")));
  // After a debit by hand for spend elsewhere, which is not refused, because it took place.
  statement.units_before = statement.cap_units;
  const Verification beyond = Verify(statement);
  EXPECT_TRUE(beyond.passed());
  EXPECT_THAT(Find(beyond, "ledger")->detail, HasSubstr("which is beyond the cap"));
  statement = ExampleStatement();
  statement.cap_units += 1;
  ExpectOnlyFailure(Verify(statement), "ledger", "the certificate says");
}

TEST_F(CertificateTest, AnEventAboveTheCapIsRefused) {
  Statement statement = ExampleStatement();
  statement.cap_epsilon = 0.5;
  ExpectOnlyFailure(Verify(statement), "ledger", "exceeds the budget's cap");
}

TEST_F(CertificateTest, AnOrderOrCapOutOfRangeIsRefused) {
  Statement statement = ExampleStatement();
  statement.order = 1;
  ExpectOnlyFailure(Verify(statement), "ledger", "order");
  statement = ExampleStatement();
  statement.cap_epsilon = 0;
  ExpectOnlyFailure(Verify(statement), "ledger", "cap_epsilon");
}

TEST_F(CertificateTest, ASignedPayloadThatIsNotAStatementIsRefused) {
  for (const char* payload : {"", "{}", "hello world"}) {
    const Verification verification = VerifyCertificate(SignPayload(payload, key_), trusted(), {npz_}).value();
    ExpectOnlyFailure(verification, "statement", "");
    EXPECT_EQ(verification.checks.size(), 2U);
  }
}

TEST_F(CertificateTest, ACertificateWhoseEvaluationIsNotThePlansIsRefused) {
  Statement statement = ExampleStatement(FullSpec());
  statement.evaluation.reset();
  EXPECT_EQ(SignStatement(statement, key_).status().code(), absl::StatusCode::kInvalidArgument);
  const Verification verification = Verify(statement);
  ExpectOnlyFailure(verification, "statement", "predicate.evaluation");
}

TEST_F(CertificateTest, APublicCertificateSaysThatNothingIsPromised) {
  const std::string envelope = SignStatement(ExamplePublicStatement(), key_).value();
  const Verification verification = VerifyCertificate(envelope, trusted(), {npz_}).value();
  EXPECT_TRUE(verification.passed());
  ASSERT_NE(Find(verification, "guarantee"), nullptr);
  EXPECT_THAT(Find(verification, "guarantee")->detail, HasSubstr("nothing is guaranteed"));
  EXPECT_EQ(Find(verification, "epsilon"), nullptr);
  EXPECT_EQ(verification.recomputed_epsilon, 0);
  EXPECT_FALSE(VerifyCertificate(envelope, trusted(), {other_}).value().passed());
}

TEST_F(CertificateTest, AStatementThatWouldNotBeTakenBackIsNotSigned) {
  Statement statement = ExampleStatement();
  statement.job = "not a name";
  EXPECT_EQ(SignStatement(statement, key_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(CertificateTest, AnEmptyVerificationHasNotPassed) { EXPECT_FALSE(Verification().passed()); }

}  // namespace
}  // namespace dpar
