#include "server/uploads/membership.h"

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "server/ledger/entries.h"
#include "server/store/datasets.h"
#include "server/witness/rollback.h"

namespace dpar {
namespace {

std::string AskedPopulation(const v1::OpenUploadRequest& declared, const Recognised& content) {
  return declared.population().empty() ? content.own_population : declared.population();
}

// Opens the population that the content belongs to, under the terms of its mark if it has one.
absl::Status OpenPopulation(Transaction& transaction, const v1::OpenUploadRequest& declared, const Recognised& content,
                            const EntryContext& context, const std::string& name) {
  DPAR_ASSIGN_OR_RETURN(const BudgetTerms asked, MakeBudgetTerms(declared.cap_epsilon(), declared.cap_delta()));
  DPAR_RETURN_IF_ERROR(OpenBudget(transaction, name, content.marked_terms.value_or(asked), context));
  if (!content.frozen_reason.empty()) {
    DPAR_RETURN_IF_ERROR(SetFrozen(transaction, name, content.frozen_reason));
  }
  if (content.marked_degree > 0) {
    DPAR_RETURN_IF_ERROR(NarrowToDegree(transaction, name, content.marked_degree));
  }
  if (!content.marked_terms.has_value() || asked.cap_epsilon >= content.marked_terms->cap_epsilon) {
    return absl::OkStatus();
  }
  return SetCap(transaction, name, asked.cap_epsilon, "declared with the upload", context);
}

}  // namespace

// The witness's errors name files, which are for operators.
absl::Status FromWitness(const absl::Status& status) {
  if (status.ok()) {
    return status;
  }
  spdlog::error("uploads: the witness directory cannot be used: {}", std::string(status.message()));
  return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                   "the server's witness directory cannot be used; try again, and tell an operator");
}

absl::Status Recognise(const MarkDirectory& marks, const v1::OpenUploadRequest& declared, Recognised& content) {
  if (!declared.is_public()) {
    content.own_population = absl::StrCat(declared.parent(), "/populations/", declared.dataset_id());
  }
  const absl::StatusOr<std::optional<std::string>> remembered = marks.PopulationOf({declared.parent(), content.digest});
  DPAR_RETURN_IF_ERROR(FromWitness(remembered.status()));
  content.remembered = *remembered;
  const std::string name = content.remembered.value_or(AskedPopulation(declared, content));
  if (name.empty()) {
    return absl::OkStatus();
  }
  const absl::StatusOr<std::optional<Mark>> mark = marks.Read(name);
  if (absl::IsDataLoss(mark.status())) {
    content.frozen_reason = UnreadableReason(mark.status().message());
    return absl::OkStatus();
  }
  DPAR_RETURN_IF_ERROR(FromWitness(mark.status()));
  if (mark->has_value()) {
    content.frozen_reason = RollbackReason(**mark);
    content.marked_terms = TermsOf(**mark);
    content.marked_degree = (*mark)->terms.max_degree;
    content.marked_node_total = (*mark)->terms.node_total;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> FirstPopulation(Transaction& transaction,
                                                           const v1::OpenUploadRequest& declared,
                                                           const Recognised& content) {
  DPAR_ASSIGN_OR_RETURN(const std::optional<std::string> known,
                        FindPopulationByContent(transaction, declared.parent(), content.digest));
  if (known.has_value() || !content.remembered.has_value()) {
    return known;
  }
  // It may have been merged since.
  std::string name = *content.remembered;
  while (true) {
    const absl::StatusOr<Account> account = LoadAccount(transaction, name);
    if (absl::IsNotFound(account.status()) || (account.ok() && account->merged_into.empty())) {
      return name;
    }
    DPAR_RETURN_IF_ERROR(account.status());
    name = account->merged_into;
  }
}

absl::Status Join(Transaction& transaction, const v1::OpenUploadRequest& declared, const Recognised& content,
                  const std::optional<std::string>& first, const EntryContext& context, v1::Dataset& dataset,
                  v1::FinishUploadResponse& answer) {
  const std::string name = first.value_or(AskedPopulation(declared, content));
  if (!declared.population().empty() && name != declared.population()) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::CONTENT_HAS_POPULATION,
                     absl::StrCat("the same content belongs to ", name,
                                  " already. Upload it without a population, or name that one; if both hold the same "
                                  "people, an owner merges them"),
                     {{"population", name}});
  }
  const absl::Status found = LoadAccount(transaction, name).status();
  if (!found.ok() && (!absl::IsNotFound(found) || name == declared.population())) {
    return found;
  }
  if (found.ok() && name == content.own_population && !first.has_value()) {
    // Opened by other content in place of one that the store had lost.
    return MakeError(absl::StatusCode::kAlreadyExists, v1::RESOURCE_EXISTS,
                     absl::StrCat(name,
                                  " exists; choose another id for the dataset, or name that population if this is "
                                  "data about its people"),
                     {{"resource", name}});
  }
  if (!found.ok()) {
    DPAR_RETURN_IF_ERROR(OpenPopulation(transaction, declared, content, context, name));
  }
  answer.set_budget_shared(found.ok() || !content.frozen_reason.empty());
  DPAR_ASSIGN_OR_RETURN(const std::optional<std::string> known,
                        FindPopulationByContent(transaction, declared.parent(), content.digest));
  // Whether a declared version has the content of another must show in no budget. Without a declaration, that the
  // population is shared says so already.
  if (!known.has_value() || !declared.population().empty()) {
    // A store that was rolled back may have lost versions. The mark may know this one or not: it is counted again.
    DPAR_RETURN_IF_ERROR(RaiseNodeTotal(transaction, name, content.marked_node_total));
    DPAR_RETURN_IF_ERROR(AddVersion(transaction, name, declared.node_count(), context));
  }
  if (!known.has_value()) {
    DPAR_RETURN_IF_ERROR(RememberContent(transaction, declared.parent(), content.digest, name));
  }
  dataset.set_population(name);
  return declared.has_max_degree() ? NarrowToDegree(transaction, name, declared.max_degree()) : absl::OkStatus();
}

}  // namespace dpar
