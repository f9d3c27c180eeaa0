// One statement in place of many that differ in their parameters only: what a statement costs PostgreSQL besides its
// rows is most of what a small one costs.
#ifndef DPAR_SERVER_STORE_MERGED_STATEMENT_H_
#define DPAR_SERVER_STORE_MERGED_STATEMENT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/store/database.h"
#include "server/store/postgres_connection.h"

namespace dpar {

// The parameters of each of the many, which were checked (CheckParameters). They are one or more, and equally many.
using ParameterRows = std::vector<const std::vector<Value>*>;

// A SELECT for each row of parameters. What it gives has one more column, the first: the number of the row of
// parameters, from 1, that it belongs to. None when the rows have no parameters, or no types in common.
std::optional<PostgresConnection::Statement> MergeQueries(absl::string_view sql, const ParameterRows& rows);

// What MergeQueries of `count` rows of parameters gave, for each of them; for one, what its own statement gave. None
// when it makes no sense.
std::optional<std::vector<std::vector<Row>>> SplitRows(std::vector<Row> rows, size_t count);

// An INSERT ... VALUES (...) or an UPDATE ... WHERE ..., without queries in it, for each row of parameters. It fails
// with division_by_zero unless as many rows were changed as there are rows of parameters. None for any other statement,
// and as above. Rows that two of an UPDATE would change are changed once, so that it fails.
// For connections that plan by indexes (PostgresConnection::Plans).
std::optional<PostgresConnection::Statement> MergeChanges(absl::string_view sql, const ParameterRows& rows);

// Queries in their order, those with equal texts that follow each other merged into one where that is possible.
struct MergedRun {
  PostgresConnection::Statement statement;
  size_t first = 0;  // of the statements that it stands for
  size_t count = 0;  // of them; the statement itself when it is one
};
std::vector<MergedRun> MergeRuns(const std::vector<PostgresConnection::Statement>& statements);

// A change that fails, with division_by_zero if with nothing else, unless it changes exactly one row. The server itself
// then goes no further, so that the commit can travel together with the changes before it.
std::string ChangeOne(absl::string_view sql);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_MERGED_STATEMENT_H_
