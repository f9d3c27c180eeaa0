// How fast files arrive, and what memory that takes: DPAR_BINARY_DIR=build/release build/release/bin/upload_benchmark
// [megabytes [rounds]]
//
// A real dpard, with TLS, a token and its disk, against a bare gRPC server with the same certificate that takes the
// same stream of 1 MiB chunks and throws it away; both are processes of their own, and the clients are threads of this
// one. For 1 upload and for 8 at once, `megabytes` in all (1024 unless given). Rounds take turns, because others share
// the machine: bare, dpard, and a plain write and fsync of as many bytes to the same directory, which is the disk's
// share. Medians count, of rates and of each round's ratio. A rate is over everything until the last answer, so dpard's
// includes its fsync. Memory is the most that dpard held while it received, beyond what it held when idle (VmHWM,
// VmRSS).
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "core/random/secure_random.h"
#include "tests/end_to_end/harness.h"

namespace dpar::e2e {
namespace {

constexpr int64_t kChunkBytes = int64_t{1} << 20;
constexpr int64_t kMegabyte = 1'000'000;
constexpr int kRounds = 5;
constexpr double kWantedRatio = 0.7;
constexpr int64_t kWantedMemory = int64_t{64} << 20;
constexpr absl::Duration kPatience = absl::Minutes(10);

// Reads and forgets.
class BareService final : public v1::DatasetService::Service {
 public:
  grpc::Status WriteUpload(grpc::ServerContext* /*context*/, grpc::ServerReader<v1::WriteUploadRequest>* reader,
                           v1::WriteUploadResponse* response) override {
    int64_t received = 0;
    v1::WriteUploadRequest message;
    while (reader->Read(&message)) {
      received += static_cast<int64_t>(message.data().size());
    }
    response->set_committed_offset(received);
    return grpc::Status::OK;
  }
};

// The other process: serves until it is killed.
int ServeBare(const std::string& certificate, const std::string& key, const std::string& address_file) {
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({ReadFile(key), ReadFile(certificate)});
  BareService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port);
  builder.SetMaxReceiveMessageSize(static_cast<int>(2 * kChunkBytes));
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    return 1;
  }
  WriteFile(address_file, absl::StrCat("127.0.0.1:", port));
  server->Wait();
  return 0;
}

void Require(const grpc::Status& status, const std::string& what) {
  if (!status.ok()) {
    std::cerr << what << ": " << status.error_message() << "\n";
    std::exit(1);
  }
}

// One stream of `bytes`.
void Send(const Client& client, const std::string& upload, int64_t bytes, const std::string& chunk) {
  v1::WriteUploadResponse response;
  const auto context = MakeContext(client.token(), kPatience);
  const auto writer = client.stub<v1::DatasetService::Stub>().WriteUpload(context.get(), &response);
  v1::WriteUploadRequest message;
  message.set_name(upload);
  for (int64_t sent = 0; sent < bytes; sent += kChunkBytes) {
    message.set_data(chunk.data(), static_cast<size_t>(std::min(kChunkBytes, bytes - sent)));
    if (!writer->Write(message)) {
      break;
    }
    message.clear_name();
  }
  writer->WritesDone();
  Require(writer->Finish(), "WriteUpload");
  if (response.committed_offset() != bytes) {
    std::cerr << "the server took " << response.committed_offset() << " of " << bytes << " bytes\n";
    std::exit(1);
  }
}

double MegabytesPerSecond(int64_t bytes, const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return static_cast<double>(bytes) / kMegabyte / seconds;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Everything that a round needs, set up before its clock runs.
class World {
 public:
  World() : chunk_(static_cast<size_t>(kChunkBytes), '\0') {
    SecureRandom random;
    random.Fill(std::span(reinterpret_cast<uint8_t*>(chunk_.data()), chunk_.size()));
  }

  bool Start() {
    if (!dpard_.Start()) {
      return false;
    }
    tenant_ = dpard_.NewTenant();
    const std::string address_file = dpard_.Scratch("bare-address");
    bare_ = std::make_unique<Process>(
        std::vector<std::string>{BinaryPath("upload_benchmark"), "--bare", dpard_.data_directory() + "/tls/server.pem",
                                 dpard_.data_directory() + "/tls/server.key", address_file},
        Environment(), dpard_.Scratch("bare.log"), dpard_.Scratch("bare.log"));
    const absl::Time deadline = absl::Now() + absl::Minutes(1);
    while (ReadFile(address_file).empty() && absl::Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    bare_address_ = ReadFile(address_file);
    return !bare_address_.empty();
  }

  // As many streams at once of equal parts of `bytes`.
  double Bare(int uploads, int64_t bytes) {
    std::vector<Client> clients;
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = ReadFile(dpard_.ca_file());
    for (int i = 0; i < uploads; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      clients.emplace_back(grpc::CreateCustomChannel(bare_address_, grpc::SslCredentials(tls), arguments), "");
    }
    return SendAll(clients, std::vector<std::string>(static_cast<size_t>(uploads), "bare"), bytes);
  }

  struct Received {
    double rate = 0;
    int64_t memory_bytes = 0;
  };
  Received Dpard(int uploads, int64_t bytes) {
    std::vector<Client> clients;
    std::vector<std::string> names;
    for (int i = 0; i < uploads; ++i) {
      clients.push_back(dpard_.Owner(tenant_));
      names.push_back(Open(clients.back(), bytes / uploads));
    }
    const int64_t idle = MemoryOf(dpard_.pid(), "VmRSS");
    ForgetPeakMemory(dpard_.pid());
    Received received;
    received.rate = SendAll(clients, names, bytes);
    received.memory_bytes = MemoryOf(dpard_.pid(), "VmHWM") - idle;
    for (int i = 0; i < uploads; ++i) {
      Discard(clients[static_cast<size_t>(i)], names[static_cast<size_t>(i)]);
    }
    return received;
  }

  // The same bytes from memory to the same disk.
  double Disk(int64_t bytes) const {
    const std::string path = dpard_.data_directory() + "/uploads/plain";
    const double rate = MegabytesPerSecond(bytes, [&] {
      const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      const absl::Cleanup close_it = [descriptor] { close(descriptor); };
      bool good = descriptor >= 0;
      for (int64_t sent = 0; good && sent < bytes; sent += kChunkBytes) {
        good = write(descriptor, chunk_.data(), chunk_.size()) == kChunkBytes;
      }
      if (!good || fsync(descriptor) != 0) {
        std::cerr << "the disk does not take the bytes\n";
        std::exit(1);
      }
    });
    unlink(path.c_str());
    return rate;
  }

 private:
  double SendAll(const std::vector<Client>& clients, const std::vector<std::string>& names, int64_t bytes) const {
    const auto count = static_cast<int64_t>(clients.size());
    // Connections are made before the clock runs.
    for (const Client& client : clients) {
      v1::GetServerInfoRequest request;
      client.Call(&v1::ServerService::Stub::GetServerInfo, request);
    }
    std::barrier begin(static_cast<std::ptrdiff_t>(count) + 1);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < clients.size(); ++i) {
      threads.emplace_back([&, i] {
        begin.arrive_and_wait();
        Send(clients[i], names[i], bytes / count, chunk_);
      });
    }
    return MegabytesPerSecond(bytes / count * count, [&] {
      begin.arrive_and_wait();
      for (std::thread& thread : threads) {
        thread.join();
      }
    });
  }

  std::string Open(const Client& client, int64_t bytes) const {
    v1::OpenUploadRequest request;
    request.set_parent(tenant_.name);
    request.set_request_id(NewRequestId());
    request.set_size_bytes(bytes);
    request.set_node_count(1000);
    request.set_feature_count(10);
    request.set_class_count(2);
    const auto answer = client.Call(&v1::DatasetService::Stub::OpenUpload, request);
    Require(answer.status, "OpenUpload");
    return answer.value.name();
  }

  // Ends an upload whose bytes are no graph: its digest is never that of 64 zeros.
  static void Discard(const Client& client, const std::string& upload) {
    v1::FinishUploadRequest request;
    request.set_name(upload);
    request.set_request_id(NewRequestId());
    request.set_sha256(std::string(64, '0'));
    client.Call(&v1::DatasetService::Stub::FinishUpload, request);
  }

  TestServer dpard_;
  TenantAccess tenant_;
  std::unique_ptr<Process> bare_;
  std::string bare_address_;
  std::string chunk_;
};

// Whether it was fast and small enough.
bool Measure(World& world, int uploads, int64_t bytes, int rounds) {
  std::vector<double> bare;
  std::vector<double> dpard;
  std::vector<double> disk;
  std::vector<double> ratios;
  int64_t memory = 0;
  for (int round = 0; round < rounds; ++round) {
    bare.push_back(world.Bare(uploads, bytes));
    const World::Received received = world.Dpard(uploads, bytes);
    dpard.push_back(received.rate);
    disk.push_back(world.Disk(bytes));
    ratios.push_back(dpard.back() / bare.back());
    memory = std::max(memory, received.memory_bytes);
    std::cout << absl::StrFormat("  round %d: bare %.0f MB/s, dpard %.0f MB/s, ratio %.2f, disk alone %.0f MB/s\n",
                                 round + 1, bare.back(), dpard.back(), ratios.back(), disk.back())
              << std::flush;
  }
  const double ratio = Median(ratios);
  std::cout << absl::StrFormat(
      "%d upload(s) at once, %d MB in all: bare %.0f MB/s, dpard %.0f MB/s, disk alone %.0f MB/s; ratio %.2f (wanted "
      "%.1f); dpard's memory +%.1f MiB at most (wanted %d)\n",
      uploads, bytes / kMegabyte, Median(bare), Median(dpard), Median(disk), ratio, kWantedRatio,
      static_cast<double>(memory) / (1 << 20), kWantedMemory >> 20);
  return ratio >= kWantedRatio && memory <= kWantedMemory;
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.size() == 4 && arguments[0] == "--bare") {
    return ServeBare(arguments[1], arguments[2], arguments[3]);
  }
  int64_t megabytes = 1024;
  int rounds = kRounds;
  if (arguments.size() > 2 || (!arguments.empty() && !absl::SimpleAtoi(arguments[0], &megabytes)) ||
      (arguments.size() > 1 && !absl::SimpleAtoi(arguments[1], &rounds)) || megabytes < 8 || rounds < 1) {
    std::cerr << "upload_benchmark [megabytes [rounds]]\n";
    return 2;
  }
  World world;
  if (!world.Start()) {
    return 1;
  }
  bool good = true;
  for (const int uploads : {1, 8}) {
    good = Measure(world, uploads, megabytes << 20, rounds) && good;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace dpar::e2e

int main(int argc, char** argv) { return dpar::e2e::Main(std::vector<std::string>(argv + 1, argv + argc)); }
