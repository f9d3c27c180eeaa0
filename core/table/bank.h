// An example of an owner's own tables: a bank whose accounts belong to one of three segments. Public, because made from
// parameters alone.
#ifndef DPAR_CORE_TABLE_BANK_H_
#define DPAR_CORE_TABLE_BANK_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/random/random.h"
#include "core/table/table_graph.h"

namespace dpar {

struct BankTables {
  TableFiles files;
  std::string schema;
  int64_t accounts = 0;
  int64_t transfers = 0;
};

// Writes accounts.csv, transfers.csv and accounts.schema.yaml, in which all is declared as a bank knows it without its
// rows. INVALID_ARGUMENT unless accounts is 10 to 20'000'000 and the directory exists.
absl::StatusOr<BankTables> WriteBankTables(const std::string& directory, int64_t accounts, RandomSource& random);

}  // namespace dpar

#endif  // DPAR_CORE_TABLE_BANK_H_
