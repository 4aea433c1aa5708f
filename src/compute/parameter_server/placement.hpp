// Decides which server stores which rows of which table.
//
// A table is cut by rows into slices of about kSliceNumbersMax numbers. Every slice orders the
// servers by a hash of table, slice and server (highest first), and is placed on the first server
// that is not full. A server is full at kLoadMax times an even share, so the load is balanced. The
// order does not depend on the set of servers, so an additional server takes its share, and most
// other slices stay where they are.
//
// Threads: plain values, pure functions. Errors: invalid, naming the table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "parameter_server/update.hpp"

namespace trainyard::parameter_server {

// A table of rows of numbers with one update rule, for instance an embedding. A dense tensor is a
// table with one number per row.
struct Table {
  std::string name;
  uint64_t rows = 0;
  uint32_t width = 1;  // numbers in a row
  Rule rule;
};

struct Slice {
  uint32_t table = 0;
  uint64_t begin = 0;  // rows
  uint64_t end = 0;
  uint32_t server = 0;  // index among the servers, from 0
  bool operator==(const Slice&) const = default;
};

// 1 MiB: small enough to balance, large enough to send at once.
inline constexpr uint64_t kSliceNumbersMax = 1 << 18;
inline constexpr double kLoadMax = 1.1;      // times an even share
inline constexpr size_t kTablesMax = 65536;  // enough for the largest models
// Numbers of all tables together: rejects invalid sizes early.
inline constexpr uint64_t kNumbersMax = uint64_t{1} << 40;

class Placement {
 public:
  // Requires: servers > 0.
  static Result<Placement> make(std::vector<Table> tables, uint32_t servers);

  const std::vector<Table>& tables() const { return tables_; }
  uint32_t servers() const { return servers_; }
  // Returns the slices, sorted by table and first row.
  const std::vector<Slice>& slices() const { return slices_; }
  std::vector<Slice> of_table(uint32_t table) const;
  // Returns the slice that contains a row. Requires: row < tables()[table].rows.
  const Slice& slice_of(uint32_t table, uint64_t row) const;
  uint64_t numbers_of(uint32_t server) const;
  // Returns a digest, which is equal for equal placements of equal tables.
  uint64_t digest() const;

 private:
  std::vector<Table> tables_;
  uint32_t servers_ = 0;
  std::vector<Slice> slices_;
  std::vector<size_t> first_;  // the first slice of each table, and the end
};

}  // namespace trainyard::parameter_server
