// Defines the types of fusion/: the requests of a rank, which have names, and the agreements of all
// ranks on them.
//
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/types.hpp"
#include "gradients/compress/compression.hpp"

namespace trainyard::gradients {

enum class Operation : uint8_t {
  allreduce,
  adasum,  // an allreduce with the reduction of adasum.hpp
  all_gather,
  broadcast,
  reduce_scatter,
  all_to_all,
  barrier,
  join,
  add_set,
  remove_set
};
inline constexpr int kOperationsCount = 10;
std::string_view to_string(Operation operation);

// elements of a tensor; more than any memory can store
inline constexpr uint64_t kElementsMax = uint64_t{1} << 48;

// A Signature is the part of a request that the ranks compare: everything except its memory.
struct Signature {
  std::string name;
  Operation operation = Operation::allreduce;
  collectives::Type type = collectives::Type::f32;
  collectives::Reduction reduction = collectives::Reduction::sum;
  double prescale = 1;
  double postscale = 1;
  int root = 0;  // broadcast: a rank of the whole group
  Compression compression;
  int priority = 0;
  int set = 0;
  std::string group;
  uint32_t group_members = 0;
  // The first dimension is the number of rows, the unit of all_gather, all_to_all and
  // reduce_scatter.
  std::vector<uint64_t> shape;
  std::vector<uint64_t> splits;  // all_to_all: rows for each member; add_set: the ranks

  uint64_t elements() const;
  uint64_t row_elements() const;  // elements of one row; 1 for a scalar
  uint64_t rows() const { return shape.empty() ? 1 : shape[0]; }
  bool operator==(const Signature&) const = default;
};

// Returns "allreduce of layer1.weight".
std::string name_of(const Signature& signature);
// Returns the key that identifies a tensor: names are unique within a set.
std::string key_of(int set, std::string_view name);
inline std::string key_of(const Signature& signature) {
  return key_of(signature.set, signature.name);
}

// An Agreement is the operation that all ranks carry out, or the reason why none does.
struct Agreement {
  Signature signature;  // as one of the requesting ranks sent it
  // all_gather: by member; all_to_all: rows from member 0 to each member, then from member 1 ..
  std::vector<uint64_t> rows;
  bool keep = false;  // it enters the response cache
  int last = -1;      // join: the rank that joined last
  std::string fault;  // not empty: the operation fails with this message
  bool late = false;  // the fault is that some ranks did not submit in time
  bool operator==(const Agreement&) const = default;
};

// The values that the tuner changes; equal on all ranks.
struct Settings {
  uint64_t fusion_bytes = uint64_t{64} << 20;
  uint32_t cycle_microseconds = 1000;
  bool operator==(const Settings&) const = default;
};

}  // namespace trainyard::gradients
