#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/certificate_document.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/trusted_keys.h"
#include "core/atomic_file.h"
#include "core/certificate/certificate.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr mode_t kFileMode = 0666;
constexpr int kDocumentWidth = 100;

struct CertificateArguments {
  std::string certificate;
  std::vector<std::string> models;
  std::vector<std::string> keys;
  bool ask_server = false;
  std::string html;
};

std::string KeyBeside(const std::string& certificate) {
  return (std::filesystem::path(certificate).parent_path() / "signing.pub").string();
}

// The given keys, updated by the server's if it is asked; else the server's; else the key beside the certificate.
absl::StatusOr<std::vector<KnownKey>> TrustedKeys(Session& session, const CertificateArguments& arguments) {
  std::vector<KnownKey> keys;
  if (!arguments.keys.empty()) {
    DPAR_ASSIGN_OR_RETURN(keys, ReadTrustedKeys(arguments.keys));
  }
  if (arguments.ask_server) {
    DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
    DPAR_ASSIGN_OR_RETURN(std::vector<KnownKey> listed, AskForKeys(*connection));
    if (arguments.keys.empty()) {
      return listed;
    }
    const size_t given = keys.size();
    MergeKeys(listed, keys);
    keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(given), keys.end());
    return keys;
  }
  if (arguments.keys.empty()) {
    const std::string path = KeyBeside(arguments.certificate);
    if (const absl::Status readable = CheckInputFile("key", path); !readable.ok()) {
      return InvalidField(
          "key", absl::StrCat("no --key is given, and beside the certificate there is none: ", readable.message()));
    }
    return ReadTrustedKeys({path});
  }
  return keys;
}

// Whether the server's ledger still holds the entry that the certificate was signed for.
absl::StatusOr<Check> AskForChain(Session& session, const Statement& statement) {
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  v1::VerifyChainRequest request;
  request.set_name(statement.population);
  request.set_known_sequence(statement.ledger_sequence);
  request.set_known_hash(statement.ledger_hash);
  DPAR_ASSIGN_OR_RETURN(const v1::VerifyChainResponse chain, connection->VerifyChain(request));
  if (!chain.intact()) {
    return Check{
        "ledger chain", false,
        absl::StrCat("the server's ledger does not hold it: entry ", chain.first_bad_sequence(), ": ", chain.fault())};
  }
  return Check{"ledger chain", true,
               absl::StrCat("the server's ledger holds the entry, and its ", FormatCount(chain.entry_count()),
                            " entries add up")};
}

absl::StatusOr<Verification> VerifyWith(Session& session, const CertificateArguments& arguments) {
  DPAR_ASSIGN_OR_RETURN(const std::string envelope, ReadSmallFile("certificate", arguments.certificate));
  for (const std::string& model : arguments.models) {
    DPAR_RETURN_IF_ERROR(CheckInputFile("model", model));
  }
  DPAR_ASSIGN_OR_RETURN(const std::vector<KnownKey> keys, TrustedKeys(session, arguments));
  absl::StatusOr<Verification> verification = VerifyCertificate(envelope, keys, arguments.models);
  DPAR_RETURN_IF_ERROR(AsLocal(verification.status()));
  if (arguments.ask_server && verification->has_statement() && !verification->statement.is_public) {
    DPAR_ASSIGN_OR_RETURN(Check chain, AskForChain(session, verification->statement));
    verification->checks.push_back(std::move(chain));
  }
  if (arguments.keys.empty() && !arguments.ask_server) {
    session.err() << "note: the key is the signing.pub beside the certificate, so whoever made both\n"
                     "could sign anything. Compare its id with the one that the server's operator\n"
                     "gives you, or pass that key with --key:\n  "
                  << keys.front().key.key_id() << "\n";
  }
  return verification;
}

bool IsColoured(const Session& session) { return session.terminal().colour && session.terminal().out_is_terminal; }

void PrintVerification(Session& session, const Verification& verification) {
  const bool colour = IsColoured(session);
  session.out() << RenderChecks(verification.checks, session.TableWidth(), session.terminal().utf8, colour);
  if (verification.passed() && verification.statement.evaluation.has_value()) {
    const v1::Evaluation& evaluation = *verification.statement.evaluation;
    session.out() << "held-out accuracy " << FormatNumber(evaluation.accuracy()) << ", 95% interval "
                  << FormatNumber(evaluation.low()) << " to " << FormatNumber(evaluation.high()) << ", from "
                  << FormatCount(evaluation.held_out_slots()) << " slots\n";
  }
  if (verification.passed()) {
    if (const std::vector<std::string> columns = ReadOffTheData(verification.statement); !columns.empty()) {
      session.out() << "read off the data: " << absl::StrJoin(columns, ", ") << "\n";
    }
  }
  const bool good = StandingOf(verification) == Standing::kGuaranteed;
  session.out() << Coloured(good ? Colour::kGreen : Colour::kYellow, Verdict(verification), colour) << "\n";
}

Json VerificationJson(const Verification& verification) {
  Json json = {{"passed", verification.passed()}, {"verdict", Verdict(verification)}, {"key_id", verification.key_id}};
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
    if (const std::vector<std::string> columns = ReadOffTheData(statement); !columns.empty()) {
      json["statement"]["read_off_the_data"] = columns;
    }
    if (statement.evaluation.has_value()) {
      json["statement"]["evaluation"] = ResourceJson(*statement.evaluation);
    }
    json["recomputed_epsilon"] = verification.recomputed_epsilon;
  }
  return json;
}

int Report(Session& session, const Verification& verification) {
  if (session.json()) {
    session.PrintJson(VerificationJson(verification));
  } else {
    PrintVerification(session, verification);
  }
  return verification.passed() ? kDone : kFailed;
}

absl::StatusOr<int> RunVerify(Session& session, const CertificateArguments& arguments) {
  DPAR_ASSIGN_OR_RETURN(const Verification verification, VerifyWith(session, arguments));
  return Report(session, verification);
}

absl::StatusOr<int> RunShow(Session& session, const CertificateArguments& arguments) {
  if (!arguments.html.empty()) {
    DPAR_RETURN_IF_ERROR(CheckOutputFile("html", arguments.html));
  }
  DPAR_ASSIGN_OR_RETURN(const Verification verification, VerifyWith(session, arguments));
  if (!verification.has_statement()) {
    // Unsigned content is not shown: it could say anything.
    return Report(session, verification);
  }
  const CertificateDocument page = MakeCertificateDocument(verification);
  if (!arguments.html.empty()) {
    DPAR_RETURN_IF_ERROR(WriteFileAtomically(arguments.html, RenderHtml(page), kFileMode));
  }
  if (session.json()) {
    Json json = VerificationJson(verification);
    json["certificate"] = Json::parse(StatementToJson(verification.statement));
    session.PrintJson(json);
  } else if (arguments.html.empty()) {
    const int width = session.terminal().out_is_terminal ? session.terminal().width() : kDocumentWidth;
    session.out() << RenderText(page, std::min(width, kDocumentWidth), session.terminal().utf8, IsColoured(session));
  } else {
    session.out() << arguments.html << "  the certificate as a page to read and to print\n" << page.verdict << "\n";
  }
  return verification.passed() ? kDone : kFailed;
}

Json KeyJson(const KnownKey& known) {
  Json json = {{"key_id", known.key.key_id()}, {"public_key_pem", known.key.pem()}};
  json["create_time"] = known.create_time.has_value() ? Json(KeyTimeText(*known.create_time)) : Json(nullptr);
  json["retire_time"] = known.retire_time.has_value() ? Json(KeyTimeText(*known.retire_time)) : Json(nullptr);
  json["revoke_time"] = known.revoke_time.has_value() ? Json(KeyTimeText(*known.revoke_time)) : Json(nullptr);
  json["revoke_reason"] = known.revoke_reason;
  return json;
}

absl::StatusOr<int> RunKeys(Session& session) {
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const std::vector<KnownKey> keys, AskForKeys(*connection));
  if (session.json()) {
    Json list = Json::array();
    for (const KnownKey& known : keys) {
      list.push_back(KeyJson(known));
    }
    session.PrintJson({{"keys", std::move(list)}});
  } else {
    session.out() << FormatKeyList(keys);
  }
  return kDone;
}

void AddCertificateOptions(CLI::App& command, CertificateArguments& arguments) {
  command.add_option("CERTIFICATE", arguments.certificate, "certificate.json of a download")->required();
  CLI::Option* model =
      command.add_option("--model", arguments.models, "Model file that it is about; may be given more than once");
  model->expected(1)->take_all();
  command
      .add_option("--key", arguments.keys,
                  "Trusted public key, a list of them, or a directory of such files; may be given more than once "
                  "(default: signing.pub beside the certificate)")
      ->expected(1)
      ->take_all();
  command.add_flag("--ask-server", arguments.ask_server,
                   "Ask the server for its keys, whether one was revoked, and whether its ledger holds the entry");
}

CLI::App* AddVerify(CLI::App& parent, Command& chosen, const std::string& name) {
  const auto arguments = std::make_shared<CertificateArguments>();
  CLI::App* command = parent.add_subcommand("verify", "Check a certificate: signature, model, and epsilon recomputed");
  AddCertificateOptions(*command, *arguments);
  command->get_option("--model")->required();
  command->footer(
      Examples(absl::StrCat("  dpar ", name, " out/certificate.json --model out/model.npz --key signing.pub")));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunVerify(s, *arguments); }; });
  return command;
}

void AddShow(CLI::App& group, Command& chosen) {
  const auto arguments = std::make_shared<CertificateArguments>();
  CLI::App* command = group.add_subcommand("show", "A certificate as a page to read, after checking it");
  AddCertificateOptions(*command, *arguments);
  command->add_option("--html", arguments->html, "Write the page as HTML, to read in a browser and to print");
  command->footer(Examples("  dpar certificate show out/certificate.json --key signing.pub --html certificate.html"));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunShow(s, *arguments); }; });
}

void AddKeys(CLI::App& group, Command& chosen) {
  CLI::App* command = group.add_subcommand("keys", "The server's public signing keys, as --key takes them");
  command->footer(Examples("  dpar certificate keys > trusted-keys.pem"));
  command->callback([&chosen] { chosen = [](Session& s) { return RunKeys(s); }; });
}

}  // namespace

void AddCertificateCommands(CLI::App& app, Command& chosen) {
  CLI::App* group = AddCommandGroup(app, "certificate", "Check, read and print certificates", kLocalGroup);
  AddVerify(*group, chosen, "certificate verify");
  AddShow(*group, chosen);
  AddKeys(*group, chosen);
}

void AddCertificateShortForms(CLI::App& app, Command& chosen) { AddVerify(app, chosen, "verify")->group(kShortGroup); }

}  // namespace dpar
