// A Record is a small JSON document that a front end keeps in the ledger under a kind and a name:
// users, roles, policies. The control plane stores and returns records, and does not interpret
// them.
//
// Threads: plain values and pure functions.
// Errors:  changed() returns exhausted (a limit) or invalid (an empty kind or name, a document that
// is
//          not an object).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace trainyard::domain {

using RecordKey = std::pair<std::string, std::string>;  // kind, name

struct Record {
  uint64_t revision = 1;  // incremented by each write of this record
  Json document;
};

// All records. `version` counts the changes since the start of the server; conditional changes
// compare it.
struct Records {
  uint64_t version = 0;
  std::map<RecordKey, std::shared_ptr<const Record>> all;
};

// A change of one record: stores the document, or removes the record if there is none.
struct RecordWrite {
  RecordKey key;
  std::optional<Json> document;
};

inline constexpr size_t kRecordsMax = 50'000;  // all are in memory, with a few kilobytes each
inline constexpr size_t kRecordNameBytesMax = 1'024;  // an ARN with its path
// limit of one change; the deletion of a role changes a few records
inline constexpr size_t kRecordWritesMax = 1'000;
inline constexpr size_t kRecordBytesMax = 256 * 1024;  // five versions of a policy and its tags

// Returns the records after a change. Removing a record that does not exist is not an error.
Result<Records> changed(const Records& records, const std::vector<RecordWrite>& writes);

Json to_json(const RecordWrite& write);
Result<RecordWrite> record_write_from_json(const Json& json);

}  // namespace trainyard::domain
