#include "server/auth/failure_brake.h"

#include <arpa/inet.h>

#include <array>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "core/error.h"

namespace dpar {
namespace {

constexpr absl::Duration kWindow = absl::Minutes(1);
// PeerAddress returns no address without a colon.
constexpr char kOtherAddresses[] = "others";
constexpr size_t kNetworkBytes = 8;

// Also when the clock was set back since.
bool IsOver(absl::Time start, absl::Time now) { return now - start >= kWindow || now < start; }

absl::Status ComeBack(const absl::Status& failure) {
  const std::optional<google::rpc::ErrorInfo> info = GetErrorInfo(failure);
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   "too many calls with tokens that are not valid wait for their answer; try again in a second, with "
                   "a valid one",
                   {{kInsteadOf, info.has_value() ? info->reason() : ""}});
}

}  // namespace

std::string PeerAddress(absl::string_view peer) {
  constexpr absl::string_view kIpv6 = "ipv6:";
  if (!absl::ConsumePrefix(&peer, kIpv6)) {
    // "ipv4:10.0.0.1:50000"; anything else, such as a unix socket, is one address.
    return absl::StartsWith(peer, "ipv4:") ? std::string(peer.substr(0, peer.rfind(':'))) : "local:";
  }
  // "[2001:db8::1%eth0]:50000", with the brackets and the percent sign as %5B, %5D and %25 in newer versions of gRPC.
  std::string host =
      absl::StrReplaceAll(peer.substr(0, peer.rfind(':')), {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  host = host.substr(0, host.find('%'));
  std::array<char, sizeof(in6_addr)> address = {};
  if (inet_pton(AF_INET6, host.c_str(), address.data()) != 1) {
    return std::string(kIpv6);
  }
  const absl::string_view bytes(address.data(), address.size());
  constexpr absl::string_view kMapped("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
  if (absl::StartsWith(bytes, kMapped)) {
    std::array<char, INET_ADDRSTRLEN> text = {};
    inet_ntop(AF_INET, address.data() + kMapped.size(), text.data(), text.size());
    return absl::StrCat("ipv4:", text.data());
  }
  return absl::StrCat(kIpv6, absl::BytesToHexString(bytes.substr(0, kNetworkBytes)));
}

absl::Status FailureBrake::Slow(const std::string& address, const absl::Status& failure, absl::Time now,
                                bool may_wait) {
  ++failures_;
  if (!Excessive(address, now)) {
    return failure;
  }
  if (!may_wait || !StartDelay()) {
    return ComeBack(failure);
  }
  const absl::Cleanup end = [this] { EndDelay(); };
  options_.sleep(options_.delay);
  return failure;
}

size_t FailureBrake::addresses() const {
  const MutexLock lock(&mutex_);
  return counts_.size();
}

bool FailureBrake::Excessive(const std::string& address, absl::Time now) {
  const MutexLock lock(&mutex_);
  auto found = counts_.find(address);
  if (found == counts_.end() && counts_.size() >= options_.max_addresses) {
    std::erase_if(counts_, [&](const auto& entry) { return IsOver(entry.second.start, now); });
  }
  if (found == counts_.end()) {
    const bool full = counts_.size() >= options_.max_addresses;
    found = counts_.try_emplace(full ? kOtherAddresses : address, Count{now, 0}).first;
  }
  Count& count = found->second;
  if (IsOver(count.start, now)) {
    count = {now, 0};
  }
  return ++count.failures > options_.free_failures;
}

bool FailureBrake::StartDelay() {
  const MutexLock lock(&mutex_);
  if (delayed_ >= options_.max_delayed) {
    return false;
  }
  ++delayed_;
  return true;
}

void FailureBrake::EndDelay() {
  const MutexLock lock(&mutex_);
  --delayed_;
}

}  // namespace dpar
