#include "server/services/connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/services/acceptor.h"

namespace dpar {
namespace {

// Both ends of a connection. The server's end is closed as gRPC would: without a word to anybody.
class Pair {
 public:
  Pair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_), 0); }
  ~Pair() {
    Close();
    close(ends_[1]);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  [[nodiscard]] int server() const { return ends_[0]; }
  void Close() {
    if (ends_[0] >= 0) {
      close(ends_[0]);
      ends_[0] = -1;
    }
  }
  // Whether the server ended it, though its socket is still open.
  [[nodiscard]] bool IsCutOff() const {
    char byte = 0;
    return recv(ends_[1], &byte, 1, MSG_DONTWAIT) == 0;
  }

 private:
  int ends_[2] = {-1, -1};
};

std::string Peer(size_t address, size_t port) { return absl::StrCat("ipv4:10.0.0.", address, ":", port); }

class ConnectionsTest : public ::testing::Test {
 protected:
  const std::vector<Pair> pairs_ = std::vector<Pair>(8);
  Connections connections_{{.total = 4, .of_address = 2}};
};

TEST_F(ConnectionsTest, TheOldestOfItsAddressGivesWayToANewOne) {
  EXPECT_TRUE(connections_.Take(pairs_[0].server(), Peer(2, 1)));
  EXPECT_TRUE(connections_.Take(pairs_[1].server(), Peer(1, 1)));
  EXPECT_TRUE(connections_.Take(pairs_[2].server(), Peer(1, 2)));
  EXPECT_FALSE(pairs_[1].IsCutOff());
  EXPECT_TRUE(connections_.Take(pairs_[3].server(), Peer(1, 3)));
  EXPECT_FALSE(pairs_[0].IsCutOff()) << "another address pays for it";
  EXPECT_TRUE(pairs_[1].IsCutOff());
  EXPECT_FALSE(pairs_[2].IsCutOff());
}

TEST_F(ConnectionsTest, BeyondTheTotalTheOldestOfAllGivesWay) {
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(connections_.Take(pairs_[i].server(), Peer(i, 1)));
  }
  EXPECT_TRUE(pairs_[0].IsCutOff());
  EXPECT_FALSE(pairs_[1].IsCutOff());
}

TEST_F(ConnectionsTest, AConnectionWithATokenStaysAndWithoutAnotherTheNewOneIsRefused) {
  EXPECT_TRUE(connections_.Take(pairs_[0].server(), Peer(1, 1)));
  EXPECT_TRUE(connections_.Take(pairs_[1].server(), Peer(1, 2)));
  connections_.Prove(Peer(1, 1));
  connections_.Prove(Peer(9, 9));  // which is not there
  EXPECT_TRUE(connections_.Take(pairs_[2].server(), Peer(1, 3)));
  EXPECT_FALSE(pairs_[0].IsCutOff());
  EXPECT_TRUE(pairs_[1].IsCutOff());
  connections_.Prove(Peer(1, 3));
  EXPECT_FALSE(connections_.Take(pairs_[3].server(), Peer(1, 4)));
  EXPECT_TRUE(connections_.Take(pairs_[4].server(), Peer(2, 1)));
}

TEST_F(ConnectionsTest, ClosedConnectionsTakeNoPlace) {
  std::vector<std::unique_ptr<Pair>> gone;
  for (size_t i = 0; i < 4; ++i) {
    gone.push_back(std::make_unique<Pair>());
    EXPECT_TRUE(connections_.Take(gone.back()->server(), Peer(i / 2, i)));
    connections_.Prove(Peer(i / 2, i));
  }
  EXPECT_FALSE(connections_.Take(pairs_[0].server(), Peer(7, 1)));
  for (const std::unique_ptr<Pair>& pair : gone) {
    pair->Close();
  }
  absl::SleepFor(absl::Milliseconds(110));  // a sweep's period
  EXPECT_TRUE(connections_.Take(pairs_[0].server(), Peer(7, 1)));
}

TEST_F(ConnectionsTest, AnotherFileThatHasTheNumberOfASocketIsLeftAlone) {
  auto gone = std::make_unique<Pair>();
  const int number = gone->server();
  EXPECT_TRUE(connections_.Take(number, Peer(1, 1)));
  EXPECT_TRUE(connections_.Take(pairs_[0].server(), Peer(1, 2)));
  connections_.Prove(Peer(1, 2));
  gone->Close();
  Pair reuses;
  ASSERT_EQ(reuses.server(), number);
  EXPECT_TRUE(connections_.Take(pairs_[1].server(), Peer(1, 3)));
  EXPECT_FALSE(reuses.IsCutOff());
}

TEST(AcceptorTest, APortThatIsTakenAndAHostThatIsNoneAreRefused) {
  Connections connections;
  Acceptor first(connections);
  const absl::StatusOr<int> port = first.Listen("127.0.0.1", 0);
  ASSERT_TRUE(port.ok()) << port.status();
  Acceptor second(connections);
  EXPECT_EQ(second.Listen("127.0.0.1", *port).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Acceptor(connections).Listen("no-such-host.invalid", 0).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace dpar
