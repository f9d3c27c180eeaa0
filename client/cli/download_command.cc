#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/interrupt.h"
#include "client/cli/progress.h"
#include "client/sdk/download.h"
#include "client/sdk/names.h"
#include "core/atomic_file.h"
#include "core/certificate/unverified.h"
#include "core/error.h"
#include "core/infer/model.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr mode_t kFileMode = 0666;

// The key that signed the envelope, among the server's.
absl::StatusOr<std::string> SigningKeyPem(const std::string& envelope, const std::vector<v1::SigningKey>& keys) {
  std::string key_id;
  const auto parsed = nlohmann::json::parse(envelope, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer pointer("/signatures/0/keyid");
  if (!parsed.is_discarded() && parsed.contains(pointer) && parsed[pointer].is_string()) {
    key_id = parsed[pointer].get<std::string>();
  }
  for (const v1::SigningKey& key : keys) {
    if (key.key_id() == key_id) {
      return key.public_key_pem();
    }
  }
  return absl::NotFoundError("the server does not list the key that signed this certificate");
}

absl::Status MakeDirectory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error || !std::filesystem::is_directory(directory)) {
    return InvalidField("output", absl::StrCat("cannot make the directory '", directory,
                                               "': ", error ? error.message() : "a file has that name"));
  }
  return absl::OkStatus();
}

absl::StatusOr<DownloadedFile> Fetch(Session& session, Connection& connection, const std::string& job,
                                     v1::DownloadModelRequest::Artifact artifact, const std::string& path) {
  ProgressLine line(session.err(), session.terminal());
  return DownloadModel(connection, job, artifact, path, [&](int64_t received, int64_t total) {
    ProgressState state;
    state.stage = std::filesystem::path(path).filename().string();
    state.completed = received;
    state.total = total;
    state.amount = absl::StrCat(FormatBytes(received), " of ", FormatBytes(total));
    line.Update(state);
  });
}

struct FileKind {
  const char* name;
  v1::DownloadModelRequest::Artifact artifact;
  const char* member;  // of the JSON output
  const char* use;
};
constexpr std::array<FileKind, 4> kFileKinds = {
    {{"model.npz", v1::DownloadModelRequest::WEIGHTS, "weights", "for dpar predict"},
     {"model.safetensors", v1::DownloadModelRequest::SAFETENSORS, "safetensors", "the same weights for other programs"},
     {"model.onnx", v1::DownloadModelRequest::ONNX, "onnx", "to run elsewhere: each node by its own features"},
     {"model.pt", v1::DownloadModelRequest::TORCHSCRIPT, "torchscript", "the same as TorchScript"}}};

struct FetchedFile {
  const FileKind* kind;
  DownloadedFile file;
};

// The files that the certificate names: a model of 2 GiB or more has no ONNX.
absl::StatusOr<std::vector<FetchedFile>> FetchFiles(Session& session, Connection& connection, const std::string& job,
                                                    const std::string& envelope, const std::string& directory) {
  DPAR_ASSIGN_OR_RETURN(const std::vector<std::string> names, SubjectNames(envelope));
  std::vector<FetchedFile> files;
  for (const FileKind& kind : kFileKinds) {
    if (std::find(names.begin(), names.end(), kind.name) != names.end()) {
      DPAR_ASSIGN_OR_RETURN(DownloadedFile file,
                            Fetch(session, connection, job, kind.artifact, absl::StrCat(directory, "/", kind.name)));
      files.push_back({&kind, std::move(file)});
    }
  }
  return files;
}

// Whether the model has a schema, by which dpar predict encodes tables.
bool ReadsTables(const std::string& path) {
  const absl::StatusOr<Model> model = ReadModelFile(path);
  return model.ok() && !model->schema.empty();
}

absl::StatusOr<int> RunDownload(Session& session, const std::string& text, const std::string& output) {
  session.error_context().job = text;
  // So that an interrupted download removes its temporary file.
  const Interrupt interrupt([&session] { session.calls().Cancel(); });
  DPAR_ASSIGN_OR_RETURN(const std::string job, session.Resolve("jobs", text));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  // The certificate first: without one there is nothing to download, and no directory to make.
  DPAR_ASSIGN_OR_RETURN(const v1::Certificate certificate, connection->GetCertificate(job));
  DPAR_ASSIGN_OR_RETURN(const auto keys, connection->ListSigningKeys());
  DPAR_ASSIGN_OR_RETURN(const std::string key, SigningKeyPem(certificate.envelope(), keys));
  const std::string directory = output.empty() ? IdOf(job) : output;
  DPAR_RETURN_IF_ERROR(MakeDirectory(directory));
  const std::string certificate_path = directory + "/certificate.json";
  const std::string key_path = directory + "/signing.pub";
  DPAR_ASSIGN_OR_RETURN(const std::vector<FetchedFile> files,
                        FetchFiles(session, *connection, job, certificate.envelope(), directory));
  DPAR_RETURN_IF_ERROR(WriteFileAtomically(key_path, key, kFileMode));
  DPAR_RETURN_IF_ERROR(WriteFileAtomically(certificate_path, certificate.envelope(), kFileMode));
  if (session.json()) {
    Json json = {{"job", job}};
    for (const FetchedFile& fetched : files) {
      json[fetched.kind->member] = {
          {"file", fetched.file.path}, {"size_bytes", fetched.file.size_bytes}, {"sha256", fetched.file.sha256}};
    }
    json["certificate"] = certificate_path;
    json["signing_key"] = key_path;
    session.PrintJson(json);
    return kDone;
  }
  for (const FetchedFile& fetched : files) {
    session.out() << fetched.file.path << "  " << FormatBytes(fetched.file.size_bytes) << ", " << fetched.kind->use
                  << "\n";
  }
  const std::string weights = directory + "/model.npz";
  session.out() << certificate_path << "  the signed statement of what training cost\n"
                << key_path << "  the server's public key\n"
                << "next: dpar verify " << certificate_path << " --model " << weights << "\n"
                << "      dpar predict --model " << weights
                << (ReadsTables(weights) ? " --nodes FILE --edges FILE\n" : " --graph FILE\n");
  return kDone;
}

}  // namespace

CLI::App* AddDownload(CLI::App& parent, const std::string& name, const std::string& words, Command& chosen) {
  const auto job = std::make_shared<std::string>();
  const auto output = std::make_shared<std::string>();
  CLI::App* command = parent.add_subcommand(name, "Fetch a job's model, certificate and the key that signed it");
  command->add_option("JOB", *job, "Id or full name of the job")->required();
  command->add_option("-o,--output", *output, "Directory for the files (default: the job's id)");
  command->footer(Examples("  dpar " + words + " JOB -o out"));
  command->callback(
      [job, output, &chosen] { chosen = [job, output](Session& s) { return RunDownload(s, *job, *output); }; });
  return command;
}

}  // namespace dpar
