#include "server/store/turn_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"

namespace dpar {
namespace {

using ::testing::ElementsAre;

struct NamedTurn : Turn {
  char name = ' ';
};
using Line = TurnLine<NamedTurn>;

// For threads that were started to have joined the line.
constexpr absl::Duration kToArrive = absl::Milliseconds(100);

std::string NamesOf(const Line::Group& group) {
  std::string names;
  for (const NamedTurn* turn : group) {
    names.push_back(turn->name);
  }
  return names;
}

// Threads that join a line one after the other while somebody leads, and the groups that were led afterwards.
class Crowd {
 public:
  explicit Crowd(Line& line) : line_(line) {}
  ~Crowd() {
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  void Add(char name, std::vector<size_t> keys = {}) {
    threads_.emplace_back([this, name, keys = std::move(keys)] {
      NamedTurn turn;
      turn.name = name;
      turn.keys = keys;
      const Line::Group group = line_.Join(turn);
      if (!group.empty()) {
        {
          const absl::MutexLock lock(&mutex_);
          groups_.push_back(NamesOf(group));
        }
        line_.Answer(group);
      }
      ++answered_;
    });
    absl::SleepFor(kToArrive);
  }

  std::vector<std::string> Groups() {
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
    const absl::MutexLock lock(&mutex_);
    return groups_;
  }
  [[nodiscard]] int answered() const { return answered_; }

 private:
  Line& line_;
  std::vector<std::thread> threads_;
  absl::Mutex mutex_;
  std::vector<std::string> groups_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int> answered_ = 0;
};

TEST(TurnLine, ThoseThatWaitGoTogetherInTheirOrder) {
  Line line({.max_group = 3});
  NamedTurn first;
  first.name = 'a';
  const Line::Group leading = line.Join(first);
  EXPECT_EQ(NamesOf(leading), "a") << "nobody to wait for";
  Crowd crowd(line);
  for (const char name : {'b', 'c', 'd', 'e'}) {
    crowd.Add(name);
  }
  EXPECT_EQ(crowd.answered(), 0) << "one group at a time";
  line.Answer(leading);
  EXPECT_THAT(crowd.Groups(), ElementsAre("bcd", "e"));
}

TEST(TurnLine, NoTwoOfAGroupHaveAKeyInCommonAndNobodyIsForgotten) {
  Line line({.max_group = 10});
  NamedTurn first;
  const Line::Group leading = line.Join(first);
  Crowd crowd(line);
  crowd.Add('b', {1, 2});
  crowd.Add('c', {2, 3});
  crowd.Add('d', {3});
  crowd.Add('e', {1});
  crowd.Add('f');
  line.Answer(leading);
  EXPECT_THAT(crowd.Groups(), ElementsAre("bdf", "ce"));
}

TEST(TurnLine, ASecondGroupIsLedWhenEnoughWait) {
  Line line({.max_group = 10, .second_group = 3});
  NamedTurn first;
  const Line::Group leading = line.Join(first);
  Crowd crowd(line);
  crowd.Add('b');
  crowd.Add('c');
  EXPECT_EQ(crowd.answered(), 0);
  crowd.Add('d');
  EXPECT_THAT(crowd.Groups(), ElementsAre("bcd")) << "while the first is under way";
  line.Answer(leading);
}

TEST(TurnLine, AThirdGroupIsNot) {
  Line line({.max_group = 10, .second_group = 1});
  NamedTurn first;
  NamedTurn second;
  const Line::Group leading = line.Join(first);
  const Line::Group beside = line.Join(second);
  Crowd crowd(line);
  crowd.Add('c');
  EXPECT_EQ(crowd.answered(), 0);
  line.Answer(beside);
  EXPECT_THAT(crowd.Groups(), ElementsAre("c"));
  line.Answer(leading);
}

TEST(TurnLine, ALeaderOfFewerThanBeforeWaitsForMore) {
  // Long enough for the second to come, and short enough for the test to end.
  Line line({.max_group = 10, .patience = 5 * kToArrive});
  NamedTurn first;
  const Line::Group leading = line.Join(first);
  Crowd crowd(line);
  crowd.Add('b');
  crowd.Add('c');
  line.Answer(leading);
  EXPECT_THAT(crowd.Groups(), ElementsAre("bc"));
  crowd.Add('d');
  EXPECT_EQ(crowd.answered(), 2) << "it waits for another";
  crowd.Add('e');
  EXPECT_THAT(crowd.Groups(), ElementsAre("bc", "de"));
  crowd.Add('f');
  EXPECT_THAT(crowd.Groups(), ElementsAre("bc", "de", "f")) << "nobody came";
}

TEST(TurnLine, WhoWaitsForTooLongLeaves) {
  Line line({.max_group = 10, .longest_wait = kToArrive});
  NamedTurn first;
  const Line::Group leading = line.Join(first);
  NamedTurn second;
  EXPECT_TRUE(line.Join(second).empty());
  EXPECT_TRUE(second.left);
  EXPECT_FALSE(second.done);
  line.Answer(leading);
  NamedTurn third;
  EXPECT_EQ(line.Join(third).size(), 1U) << "nobody is left behind in the line";
}

TEST(TurnLine, WhoIsInAGroupWaitsForItsAnswerHoweverLong) {
  Line line({.max_group = 10, .longest_wait = 5 * kToArrive});
  NamedTurn first;
  NamedTurn leader;
  NamedTurn follower;
  const Line::Group leading = line.Join(first);
  std::thread leads([&] {
    const Line::Group group = line.Join(leader);
    EXPECT_EQ(group.size(), 2U);
    absl::SleepFor(6 * kToArrive);
    line.Answer(group);
  });
  absl::SleepFor(kToArrive);
  std::thread follows([&] { EXPECT_TRUE(line.Join(follower).empty()); });
  absl::SleepFor(kToArrive);
  line.Answer(leading);
  leads.join();
  follows.join();
  EXPECT_TRUE(follower.done);
  EXPECT_FALSE(follower.left);
}

TEST(TurnLine, ManyThreadsAreAllAnswered) {
  Line line({.max_group = 4, .second_group = 3, .patience = absl::Microseconds(10)});
  constexpr int kThreads = 20;
  constexpr int kRounds = 200;
  std::atomic<int> had = 0;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        NamedTurn turn;
        turn.keys = {static_cast<size_t>(i % 3)};
        const Line::Group group = line.Join(turn);
        had += static_cast<int>(group.size());
        EXPECT_LE(group.size(), 3U) << "there are three keys";
        if (!group.empty()) {
          line.Answer(group);
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(had, kThreads * kRounds) << "each in one group";
}

}  // namespace
}  // namespace dpar
