// The accountant against Google's dp_accounting and exact formulas: every entry of shared/golden/accountant.json where
// that file is at hand, and a copy of some of them always. The file's `meta` states the tolerances that are used here.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/privacy/accountant.h"
#include "core/privacy/calibrate.h"
#include "core/privacy/event.h"
#include "core/privacy/flat_event.h"
#include "core/privacy/pld.h"
#include "core/privacy/renyi.h"
#include "core/privacy/testing/expectations.h"
#include "gtest/gtest.h"

namespace dpar {
namespace {

using testing::ExpectRelative;
using testing::GoldenFile;

// The entries of a section; none without the file.
std::vector<nlohmann::json> Section(const char* name) {
  const nlohmann::json golden = GoldenFile();
  return golden.is_object() ? golden.at(name).get<std::vector<nlohmann::json>>() : std::vector<nlohmann::json>();
}

double Number(const nlohmann::json& entry, const char* key) { return entry.at(key).get<double>(); }
int64_t Integer(const nlohmann::json& entry, const char* key) { return entry.at(key).get<int64_t>(); }
double Listed(const nlohmann::json& entry, const char* key, size_t i) { return entry.at(key).at(i).get<double>(); }

// T steps of noise sigma. Not checked, so that calibration may ask for any noise.
v1::PrivacyEvent Steps(int64_t rows, double rate, double sigma, int64_t steps) {
  v1::PrivacyEvent event;
  event.mutable_repetition()->set_count(steps);
  v1::PrivacyEvent& step = *event.mutable_repetition()->mutable_event();
  if (rows == 1) {
    step.mutable_poisson_gaussian()->set_sampling_rate(rate);
    step.mutable_poisson_gaussian()->set_sensitivity(1);
    step.mutable_poisson_gaussian()->set_noise_stddev(sigma);
  } else {
    step.mutable_row_mixture()->set_rows(rows);
    step.mutable_row_mixture()->set_sampling_rate(rate);
    step.mutable_row_mixture()->set_sensitivity(1);
    step.mutable_row_mixture()->set_noise_stddev(sigma);
  }
  return event;
}

// a: one Gaussian mechanism. Exact to 1e-10 relative, in both columns.
struct GaussianRow {
  double sigma, epsilon, delta;
};

constexpr GaussianRow kGaussianEpsilons[] = {
    {0.5, 5.99789252981892, 0.01},
    {1, 4.3771780956812245, 1e-05},
    {20, 0.16004203445813214, 1e-05},
};

constexpr GaussianRow kGaussianDeltas[] = {
    {20, 0.1, 0.00044619186488471433276},
    {1, 8, 3.6508216874217908585e-15},
};

void CheckGaussianEpsilon(const GaussianRow& row) {
  SCOPED_TRACE(absl::StrCat("sigma ", row.sigma, " delta ", row.delta));
  const v1::PrivacyEvent event = MakeGaussianEvent(1, row.sigma, 1).value();
  ExpectRelative(EventEpsilon(event, row.delta).value(), row.epsilon, 1e-10);
}

void CheckGaussianDelta(const GaussianRow& row) {
  SCOPED_TRACE(absl::StrCat("sigma ", row.sigma, " epsilon ", row.epsilon));
  const v1::PrivacyEvent event = MakeGaussianEvent(1, row.sigma, 1).value();
  ExpectRelative(EventDelta(event, row.epsilon).value(), row.delta, 1e-10);
}

TEST(GoldenTableTest, GaussiansAreExact) {
  for (const GaussianRow& row : kGaussianEpsilons) {
    CheckGaussianEpsilon(row);
  }
  for (const GaussianRow& row : kGaussianDeltas) {
    CheckGaussianDelta(row);
  }
}

TEST(GoldenFileTest, GaussiansAreExact) {
  for (const nlohmann::json& entry : Section("a_gaussian")) {
    const double sigma = Number(entry, "sigma");
    if (entry.contains("eps_exact")) {
      CheckGaussianEpsilon({sigma, Number(entry, "eps_exact"), Number(entry, "delta")});
    } else {
      // As text, since some are below the smallest double.
      const double delta = std::strtod(entry.at("delta_exact").get<std::string>().c_str(), nullptr);
      CheckGaussianDelta({sigma, Number(entry, "eps"), delta});
    }
  }
}

// b and f: T steps in which a node has `rows` rows. `best` is what an accurate accountant comes close to from above,
// `coarse` is dp_accounting's on a grid of step `grid`.
struct StepsRow {
  int64_t rows;
  double rate, sigma;
  int64_t steps;
  double delta, best, coarse, grid;
  double renyi;     // by dp_accounting's orders; 0 if it has none
  double addition;  // in that direction only, on dp_accounting's grid
};

constexpr StepsRow kSteps[] = {
    {1, 0.001, 0.6, 1000, 1e-05, 1.4252597989319904, 1.4252637325750974, 0.0001, 2.5453503550422196,
     0.2757827263650531},
    {1, 0.01, 1, 1, 1e-05, 0.19945044779591473, 0.19945047346946176, 0.0001, 0.9555491480288791, 0.00905693512162938},
    {1, 0.01, 2, 5000, 1e-05, 1.4773769741049927, 1.477423041542231, 0.0001, 1.6131296313476846, 1.427235196258525},
    {1, 0.04, 0.6, 5000, 1e-06, 84.17092078172588, 84.17092747156485, 0.0001, 97.11642843189892, 51.096487340755154},
    {1, 0.1, 2, 1000, 0.0001, 7.275259592129888, 7.275262119331056, 0.0001, 7.976493824754531, 6.713308055069086},
    {1, 0.5, 1, 5000, 1e-05, 870.5278525480973, 870.5278525480973, 0.0001, 1684.7292811317318, 681.841984628016},
    {1, 1, 5, 1000, 1e-05, 46.21121019121809, 46.21121019121809, 0, 48.80169282486775, 46.21121019121809},
};

constexpr StepsRow kMixtureSteps[] = {
    {1, 0.05, 2, 100, 1e-05, 1.0972307818484683, 1.0972318656849394, 0.0001, 0, 0.8833447292410319},
    {2, 0.05, 10, 1, 1e-05, 0.03155052653104111, 0.031550921320694134, 0.0001, 0, 0.02366136568897359},
    {4, 0.2, 5, 1000, 1e-06, 37.04874273545573, 37.04874431857559, 0.0001, 0, 35.269027202871825},
    {10, 0.2, 2, 100, 0.0001, 101.0901594039045, 101.09015950994748, 0.0001, 0, 63.68061508954479},
};

std::vector<double> DpAccountingOrders() {
  std::vector<double> orders;
  for (int i = 1; i < 100; ++i) {
    orders.push_back(1 + i / 10.0);
  }
  for (int i = 11; i < 64; ++i) {
    orders.push_back(i);
  }
  for (const double order : {128.0, 256.0, 512.0, 1024.0}) {
    orders.push_back(order);
  }
  return orders;
}

// The larger direction, as finely as the accountant does by default. Additions are the smaller, which a rough bound
// shows; it is compared with the golden value as far as such a bound goes.
PldBound LargerDirection(const FlatEvent& flat, const StepsRow& row) {
  const PldBound remove = PldEpsilon(flat, Direction::kRemove, row.delta, PldPrecision());
  const PldBound rough_add = PldEpsilon(flat, Direction::kAdd, row.delta, {1e-3});
  EXPECT_GE(rough_add.value, row.addition * (1 - 1e-3) - 2e-5);
  EXPECT_LE(rough_add.value, row.addition * (1 + 5e-3) + 2 * rough_add.discretisation_error + 2e-5);
  if (rough_add.value <= remove.value) {
    return remove;
  }
  const PldBound add = PldEpsilon(flat, Direction::kAdd, row.delta, PldPrecision());
  return add.value > remove.value ? add : remove;
}

void CheckSteps(const StepsRow& row) {
  SCOPED_TRACE(
      absl::StrCat("rows ", row.rows, " q ", row.rate, " sigma ", row.sigma, " T ", row.steps, " delta ", row.delta));
  const v1::PrivacyEvent event = Steps(row.rows, row.rate, row.sigma, row.steps);
  const FlatEvent flat = Flatten(event).value();
  if (row.rate == 1) {
    ExpectRelative(EventEpsilon(event, row.delta).value(), row.best, 1e-9);
  } else {
    const PldBound bound = LargerDirection(flat, row);
    const double slack = 1e-6 * (1 + row.best);
    const double ratio = bound.step / row.grid;
    EXPECT_GE(bound.value, row.best - slack);
    EXPECT_LE(bound.value, row.best + 2 * (row.coarse - row.best) * ratio * ratio + slack);
  }
  if (row.renyi > 0) {
    const double epsilon = RenyiEpsilon(flat, Direction::kRemove, row.delta, DpAccountingOrders()).epsilon;
    // Its series at fractional orders is itself a bound, up to 9% above the integral; ours is the integral.
    EXPECT_LE(epsilon, row.renyi * (1 + 1e-9) + 1e-12);
  }
}

TEST(GoldenTableTest, SampledGaussiansComeCloseFromAbove) {
  for (const StepsRow& row : kSteps) {
    CheckSteps(row);
  }
}

TEST(GoldenTableTest, RowMixturesComeCloseFromAbove) {
  for (const StepsRow& row : kMixtureSteps) {
    CheckSteps(row);
  }
}

TEST(GoldenFileTest, SampledGaussiansComeCloseFromAbove) {
  for (const nlohmann::json& entry : Section("b_poisson_gaussian")) {
    const double rate = Number(entry, "q");
    for (size_t i = 0; i < entry.at("deltas").size(); ++i) {
      StepsRow row = {};
      row.rows = 1;
      row.rate = rate;
      row.sigma = Number(entry, "sigma");
      row.steps = Integer(entry, "T");
      row.delta = Listed(entry, "deltas", i);
      row.best = Listed(entry, "eps_best", i);
      row.renyi = Listed(entry, "eps_rdp", i);
      if (rate < 1) {
        row.coarse = Listed(entry, "eps_ctd_h", i);
        row.grid = Number(entry, "h");
        row.addition = Listed(entry, "eps_add_direction_only", i);
      }
      CheckSteps(row);
    }
  }
}

TEST(GoldenFileTest, RenyiAtIntegerOrdersIsExact) {
  int compared = 0;
  for (const nlohmann::json& entry : Section("b_poisson_gaussian")) {
    const FlatEvent flat = Flatten(Steps(1, Number(entry, "q"), Number(entry, "sigma"), Integer(entry, "T"))).value();
    for (size_t i = 0; i < entry.at("deltas").size(); ++i) {
      const double order = Listed(entry, "rdp_order", i);
      const double expected = Listed(entry, "eps_rdp", i);
      if (order == std::floor(order) && expected > 0) {
        const double divergence = RenyiOf(flat, order).remove;
        EXPECT_NEAR(RenyiToEpsilon(divergence, order, Listed(entry, "deltas", i)), expected, 1e-9 * expected + 1e-12);
        ++compared;
      }
    }
  }
  EXPECT_TRUE(compared > 0 || Section("b_poisson_gaussian").empty());
}

TEST(GoldenFileTest, RowMixturesComeCloseFromAbove) {
  for (const nlohmann::json& entry : Section("f_mixture_gaussians_add_remove")) {
    for (size_t i = 0; i < entry.at("deltas").size(); ++i) {
      StepsRow row = {};
      row.rows = Integer(entry, "B");
      row.rate = Number(entry, "q");
      row.sigma = Number(entry, "sigma");
      row.steps = Integer(entry, "T");
      row.delta = Listed(entry, "deltas", i);
      row.best = Listed(entry, "eps_best", i);
      row.coarse = Listed(entry, "eps_ctd", i);
      row.grid = Number(entry, "h");
      row.addition = Listed(entry, "eps_add_only", i);
      CheckSteps(row);
    }
  }
}

// c: k Laplace mechanisms of scale b. dp_accounting's own to 1e-5; never below the exact value, where there is one.
struct LaplaceRow {
  double scale;
  int64_t count;
  double delta, epsilon;
  double exact;  // 0 if there is none
};

constexpr LaplaceRow kLaplaces[] = {
    {0.5, 1, 0.0008, 1.9983993596743668, 1.9983993596584617},
    {1, 10, 1e-06, 9.99897809372502, 0},
    {2, 1000, 0.0001, 158.54628350892676, 0},
    {10, 100, 1e-05, 4.220347347300503, 0},
};

void CheckLaplace(const LaplaceRow& row) {
  SCOPED_TRACE(absl::StrCat("b ", row.scale, " k ", row.count, " delta ", row.delta));
  const v1::PrivacyEvent event = MakeRepetitionEvent(row.count, MakeLaplaceEvent(1, row.scale).value()).value();
  const double epsilon = EventEpsilon(event, row.delta).value();
  EXPECT_NEAR(epsilon, row.epsilon, 1e-5);
  EXPECT_GE(epsilon, row.exact * (1 - 1e-12));
}

TEST(GoldenTableTest, LaplaceAgreesToFiveDigits) {
  for (const LaplaceRow& row : kLaplaces) {
    CheckLaplace(row);
  }
}

TEST(GoldenFileTest, LaplaceAgreesToFiveDigits) {
  for (const nlohmann::json& entry : Section("c_laplace")) {
    CheckLaplace({Number(entry, "b"), Integer(entry, "k"), Number(entry, "delta"), Number(entry, "eps_pld"),
                  entry.value("eps_exact", 0.0)});
  }
}

// d: k selections of a bounded range. `renyi` is the smallest over all real orders; the other is what no bound that
// holds adaptively may fall below.
struct SelectionRow {
  double range;
  int64_t count;
  double delta, renyi, non_adaptive;
};

constexpr SelectionRow kSelections[] = {
    {0.01, 140, 0.002, 0.10926374427597511, 0.08627931585995749},
    {0.1, 140, 1e-06, 2.892196082265826, 2.7059070478299727},
    {0.5, 2, 0.0001, 0.924282265545795, 0.9242822631300999},
    {1, 1000, 0.0001, 187.5464924274272, 180.29017742515225},
};

void CheckSelection(const SelectionRow& row) {
  SCOPED_TRACE(absl::StrCat("range ", row.range, " k ", row.count, " delta ", row.delta));
  const v1::PrivacyEvent event = MakeRepetitionEvent(row.count, MakeBoundedRangeEvent(row.range).value()).value();
  const double renyi = RenyiEpsilon(Flatten(event).value(), Direction::kRemove, row.delta);
  EXPECT_GE(renyi, row.renyi * (1 - 1e-9));
  EXPECT_LE(renyi, row.renyi * (1 + 1e-6));
  const double epsilon = EventEpsilon(event, row.delta).value();
  EXPECT_LE(epsilon, row.renyi * (1 + 1e-6));
  EXPECT_GE(epsilon, row.non_adaptive * (1 - 1e-6));
}

TEST(GoldenTableTest, SelectionsMatchTheBestRenyiOrder) {
  for (const SelectionRow& row : kSelections) {
    CheckSelection(row);
  }
}

TEST(GoldenFileTest, SelectionsMatchTheBestRenyiOrder) {
  for (const nlohmann::json& entry : Section("d_exponential_bounded_range")) {
    CheckSelection({Number(entry, "eps"), Integer(entry, "k"), Number(entry, "delta"), Number(entry, "br_rdp_exact"),
                    Number(entry, "br_nonadaptive_optimal")});
  }
}

// e: the smallest noise. `reached` is the epsilon of the golden noise, which its search left a little off the target.
struct CalibrationRow {
  double rate;
  int64_t steps;
  double epsilon, delta, sigma, reached;
};

constexpr CalibrationRow kCalibrations[] = {
    {1, 1000, 4, 1e-05, 34.18933963764181, 4},
    {0.1, 1, 0.5, 1e-05, 1.7244755996783983, 0.5},
    {0.04, 100, 4, 1e-05, 0.8560093599314826, 4.000000000122085},
    {0.001, 5000, 1, 1e-05, 0.6970664149193975, 0.9999999835847208},
    {0.001, 1, 2, 0.01, 0, 2},
};

void CheckCalibration(const CalibrationRow& row) {
  SCOPED_TRACE(absl::StrCat("q ", row.rate, " T ", row.steps, " epsilon ", row.epsilon, " delta ", row.delta));
  const auto event_at = [&row](double x) { return Steps(1, row.rate, x, row.steps); };
  const double sigma = CalibrateNoise(event_at, row.epsilon, row.delta).value();
  if (row.sigma == 0) {
    EXPECT_EQ(sigma, 0);
    return;
  }
  const double shortfall = std::max(0.0, 1 - row.reached / row.epsilon);
  EXPECT_GE(sigma, row.sigma * (1 - 1e-9 - 2 * shortfall));
  EXPECT_LE(sigma, row.sigma * (1 + 2e-5));
}

TEST(GoldenTableTest, CalibratedNoiseErrsOnTheLargeSide) {
  for (const CalibrationRow& row : kCalibrations) {
    CheckCalibration(row);
  }
}

TEST(GoldenFileTest, CalibratedNoiseErrsOnTheLargeSide) {
  for (const nlohmann::json& entry : Section("e_calibration")) {
    const double epsilon = Number(entry, "eps");
    CheckCalibration({Number(entry, "q"), Integer(entry, "T"), epsilon, Number(entry, "delta"), Number(entry, "sigma"),
                      entry.value("eps_at_sigma", epsilon)});
  }
}

// g: one pipeline on a sample of the nodes: a Gaussian where rate and steps are 1.
struct NodeSamplingRow {
  double rate, sigma;
  int64_t steps;
  double node_rate, delta, remove, add;
};

constexpr NodeSamplingRow kNodeSamplings[] = {
    {1, 1, 1, 0.09, 1e-05, 1.5766888472410934, 0.08903938490930319},
    {1, 5, 1, 0.09, 0.01, 0, 0},
    {0.04, 1, 1000, 0.09, 1e-05, 4.921213781002953, 0.0927490856657407},
    {0.1, 5, 1000, 0.09, 0.0008, 0.21823979517998543, 0.05924562821271473},
};

void CheckNodeSampling(const NodeSamplingRow& row) {
  SCOPED_TRACE(absl::StrCat("q ", row.rate, " sigma ", row.sigma, " T ", row.steps, " delta ", row.delta));
  const v1::PrivacyEvent event = MakeNodeSamplingEvent(row.node_rate, Steps(1, row.rate, row.sigma, row.steps)).value();
  const double remove = EventEpsilon(event, row.delta, Direction::kRemove).value();
  const double add = EventEpsilon(event, row.delta, Direction::kAdd).value();
  EXPECT_NEAR(remove, row.remove, 1e-5 * row.remove + 1e-6);
  EXPECT_NEAR(add, row.add, 1e-5 * row.add + 1e-6);
  EXPECT_NEAR(EventEpsilon(event, row.delta).value(), std::max(remove, add), 1e-12 * remove);
}

TEST(GoldenTableTest, NodeSamplingAgreesInBothDirections) {
  for (const NodeSamplingRow& row : kNodeSamplings) {
    CheckNodeSampling(row);
  }
}

TEST(GoldenFileTest, NodeSamplingAgreesInBothDirections) {
  for (const nlohmann::json& entry : Section("g_outer_node_sampling")) {
    const nlohmann::json& inner = entry.at("params");
    CheckNodeSampling({inner.value("q", 1.0), Number(inner, "sigma"), inner.value("T", int64_t{1}),
                       Number(entry, "q_outer"), Number(entry, "delta_outer"), Number(entry, "eps_outer_remove"),
                       Number(entry, "eps_outer_add")});
  }
}

TEST(GoldenFileTest, HasAllEntriesThatAreTested) {
  const nlohmann::json golden = GoldenFile();
  if (!golden.is_object()) {
    return;
  }
  EXPECT_EQ(golden.at("a_gaussian").size(), 35U);
  EXPECT_EQ(golden.at("b_poisson_gaussian").size(), 72U);
  EXPECT_EQ(golden.at("c_laplace").size(), 48U);
  EXPECT_EQ(golden.at("d_exponential_bounded_range").size(), 36U);
  EXPECT_EQ(golden.at("e_calibration").size(), 360U);
  EXPECT_EQ(golden.at("f_mixture_gaussians_add_remove").size(), 36U);
  EXPECT_EQ(golden.at("g_outer_node_sampling").size(), 24U);
}

}  // namespace
}  // namespace dpar
