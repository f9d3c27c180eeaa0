// dpar verify: offline, from the files alone.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "core/certificate/certificate.h"
#include "core/certificate/signing_key.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

// A certificate or a key is a few kilobytes; a file above this is neither.
constexpr std::uintmax_t kMaxFileBytes = 1 << 20;

struct VerifyArguments {
  std::string certificate;
  std::vector<std::string> models;
  std::string key;
};

absl::StatusOr<std::string> ReadFile(absl::string_view field, const std::string& path) {
  DPAR_RETURN_IF_ERROR(CheckInputFile(field, path));
  std::error_code error;
  if (std::filesystem::file_size(path, error) > kMaxFileBytes || error) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is too large to be a certificate or a key"));
  }
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

std::string KeyPath(const VerifyArguments& arguments) {
  if (!arguments.key.empty()) {
    return arguments.key;
  }
  return (std::filesystem::path(arguments.certificate).parent_path() / "signing.pub").string();
}

absl::StatusOr<VerifyingKey> ReadKey(const VerifyArguments& arguments) {
  const std::string path = KeyPath(arguments);
  absl::StatusOr<std::string> pem = ReadFile("key", path);
  if (!pem.ok() && arguments.key.empty()) {
    return InvalidField(
        "key", absl::StrCat("no --key is given, and beside the certificate there is none: ", pem.status().message()));
  }
  DPAR_RETURN_IF_ERROR(pem.status());
  auto key = VerifyingKey::FromPem(*pem);
  if (!key.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' holds no Ed25519 public key: ", std::string(key.status().message())));
  }
  return key;
}

std::string Verdict(const Verification& verification) {
  if (!verification.passed()) {
    return "NOT VERIFIED: do not rely on this certificate for this model";
  }
  const Statement& statement = verification.statement;
  if (statement.is_public) {
    return "AUTHENTIC, BUT NOT PRIVATE: the data was declared public, and nothing is promised about it";
  }
  return absl::StrCat("VERIFIED: epsilon ", FormatNumber(statement.plan.epsilon()), " at delta ",
                      FormatNumber(statement.plan.delta()), " for every node of ", statement.dataset);
}

void PrintVerification(Session& session, const Verification& verification) {
  const bool utf8 = session.terminal().utf8;
  const bool colour = session.terminal().colour && session.terminal().out_is_terminal;
  const std::string tick = Coloured(Colour::kGreen, utf8 ? "✓" : "ok  ", colour);
  const std::string cross = Coloured(Colour::kRed, utf8 ? "✗" : "FAIL", colour);
  for (const Check& check : verification.checks) {
    session.out() << (check.passed ? tick : cross) << " " << check.name;
    session.out() << (check.detail.empty() ? "" : ": ") << check.detail << "\n";
  }
  if (verification.passed() && verification.statement.evaluation.has_value()) {
    const v1::Evaluation& evaluation = *verification.statement.evaluation;
    session.out() << "held-out accuracy " << FormatNumber(evaluation.accuracy()) << ", 95% interval "
                  << FormatNumber(evaluation.low()) << " to " << FormatNumber(evaluation.high()) << ", from "
                  << FormatCount(evaluation.held_out_slots()) << " slots\n";
  }
  const bool good = verification.passed() && !verification.statement.is_public;
  session.out() << Coloured(good ? Colour::kGreen : Colour::kYellow, Verdict(verification), colour) << "\n";
}

Json VerificationJson(const Verification& verification, const std::string& key_id) {
  Json json = {{"passed", verification.passed()}, {"verdict", Verdict(verification)}, {"key_id", key_id}};
  json["checks"] = Json::array();
  for (const Check& check : verification.checks) {
    json["checks"].push_back({{"name", check.name}, {"passed", check.passed}, {"detail", check.detail}});
  }
  if (verification.passed()) {
    const Statement& statement = verification.statement;
    json["statement"] = {{"job", statement.job},
                         {"dataset", statement.dataset},
                         {"public", statement.is_public},
                         {"epsilon", statement.plan.epsilon()},
                         {"delta", statement.plan.delta()}};
    if (statement.evaluation.has_value()) {
      json["statement"]["evaluation"] = {{"accuracy", statement.evaluation->accuracy()},
                                         {"low", statement.evaluation->low()},
                                         {"high", statement.evaluation->high()},
                                         {"held_out_slots", statement.evaluation->held_out_slots()}};
    }
    json["recomputed_epsilon"] = verification.recomputed_epsilon;
  }
  return json;
}

absl::StatusOr<int> RunVerify(Session& session, const VerifyArguments& arguments) {
  DPAR_ASSIGN_OR_RETURN(const std::string envelope, ReadFile("certificate", arguments.certificate));
  for (const std::string& model : arguments.models) {
    DPAR_RETURN_IF_ERROR(CheckInputFile("model", model));
  }
  DPAR_ASSIGN_OR_RETURN(const VerifyingKey key, ReadKey(arguments));
  const auto verification = VerifyCertificate(envelope, {key}, arguments.models);
  DPAR_RETURN_IF_ERROR(AsLocal(verification.status()));
  if (arguments.key.empty()) {
    session.err() << "note: the key is the signing.pub beside the certificate, so whoever made both\n"
                     "could sign anything. Compare its id with the one that the server's operator\n"
                     "gives you, or pass that key with --key:\n  "
                  << key.key_id() << "\n";
  }
  if (session.json()) {
    session.PrintJson(VerificationJson(*verification, key.key_id()));
  } else {
    PrintVerification(session, *verification);
  }
  return verification->passed() ? kDone : kFailed;
}

}  // namespace

void AddVerifyCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command = app.add_subcommand("verify", "Check a certificate: signature, model, and epsilon recomputed");
  command->group(kLocalGroup);
  command->add_option("CERTIFICATE", arguments->certificate, "certificate.json of a download")->required();
  command->add_option("--model", arguments->models, "Model file that it is about; may be given more than once")
      ->required()
      ->expected(1)
      ->take_all();
  command->add_option("--key", arguments->key, "The server's public key (default: signing.pub beside the certificate)");
  command->footer(Examples("  dpar verify out/certificate.json --model out/model.npz --key signing.pub"));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunVerify(s, *arguments); }; });
}

}  // namespace dpar
