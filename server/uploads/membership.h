// Which population a private dataset belongs to: the one that its content first had; else the one that was declared;
// else a new one with the dataset's own id. Ids of datasets are never used twice, so that such names never clash.
#ifndef DPAR_SERVER_UPLOADS_MEMBERSHIP_H_
#define DPAR_SERVER_UPLOADS_MEMBERSHIP_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/privacy/budget.h"
#include "dpar/v1/dataset.pb.h"
#include "server/ledger/ledger.h"
#include "server/store/database.h"
#include "server/witness/mark_directory.h"

namespace dpar {

// What the witness knows of a content, and of the population that it would open or join.
struct Recognised {
  std::string digest;                                      // under the tenant's key
  std::string own_population;                              // named after the dataset; empty for public data
  std::optional<std::string> remembered = std::nullopt;    // that the content first had
  std::string frozen_reason;                               // of the population, should the store not have it
  std::optional<BudgetTerms> marked_terms = std::nullopt;  // that it had then
  int64_t marked_degree = 0;                               // the degree promise that its cap rested on; 0: none
  int64_t marked_node_total = 0;                           // the sum of N over its versions then
};

// Fills what follows from `content.digest`. A population that the store lost opens under its old name and terms,
// frozen: its new ledger is compared with the mark, which needs units of the same order.
absl::Status Recognise(const MarkDirectory& marks, const v1::OpenUploadRequest& declared, Recognised& content);

// The population that the content first had, by the store or the witness, or what that was merged into.
absl::StatusOr<std::optional<std::string>> FirstPopulation(Transaction& transaction,
                                                           const v1::OpenUploadRequest& declared,
                                                           const Recognised& content);

// Puts the dataset into its population, and opens that if the store does not have it. FAILED_PRECONDITION /
// CONTENT_HAS_POPULATION when another was declared; errors of AddVersion.
absl::Status Join(Transaction& transaction, const v1::OpenUploadRequest& declared, const Recognised& content,
                  const std::optional<std::string>& first, const EntryContext& context, v1::Dataset& dataset,
                  v1::FinishUploadResponse& answer);

// The witness's errors name files, which are for operators: UNAVAILABLE, without them.
absl::Status FromWitness(const absl::Status& status);

}  // namespace dpar

#endif  // DPAR_SERVER_UPLOADS_MEMBERSHIP_H_
