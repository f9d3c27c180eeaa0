// Rows as the commands print them.
#ifndef DPAR_TESTS_LAB_ROWS_OUTPUT_H_
#define DPAR_TESTS_LAB_ROWS_OUTPUT_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "core/appr/private_rows.h"

namespace dpar::lab {

// [{"seed": ..., "ids": [...], "values": [...]}, ...], ids ascending, values such that they come back as the same bits.
nlohmann::ordered_json RowsJson(const ApprRows& rows);

// The first `max_rows` rows, the 10 largest entries of each, and how much was left out. At most 80 columns.
std::string RowsTable(const ApprRows& rows, size_t max_rows);

// One JSON document, on a line.
std::string JsonText(const nlohmann::ordered_json& json);

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_ROWS_OUTPUT_H_
