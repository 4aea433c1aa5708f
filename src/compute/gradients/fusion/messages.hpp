// Encodes the reports of ranks to rank 0 about tensors that are not cached, and the answer of rank
// 0 to all.
//
//   numbers   little-endian; a text or list begins with its length as u32
//   report    u32 magic "TYF1", u8 leaving, list of signatures, list of waiting
//   waiting   text key, u64 milliseconds
//   answer    u32 magic "TYF2", list of agreements, list of texts (keys that leave the cache), list
//             of u32 (ranks that leave), u8 settings follow, [u64 fusion bytes, u32 cycle in
//             microseconds], text stalls
//   agreement signature, list of u64 rows, u8 keep, i32 last, text fault, u8 late
//   signature text name, u8 operation, u8 type, u8 reduction, f64 prescale, f64 postscale,
//             i32 root, u8 compression, u32 its rank, i32 priority, i32 set, text group,
//             u32 group members, list of u64 shape, list of u64 splits
//
// Threads: pure functions. Errors: corrupt, naming the field. A list must fit into its message, so
// the bytes of a peer cannot make the receiver allocate more than a small multiple of their length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "gradients/fusion/request.hpp"

namespace trainyard::gradients {

// A tensor that a rank has submitted, and the time since then.
struct PendingTensor {
  std::string key;
  uint64_t milliseconds = 0;
  bool operator==(const PendingTensor&) const = default;
};

struct Report {
  bool leaving = false;
  std::vector<Signature> requests;
  // in a stall check: all outstanding tensors, new requests included
  std::vector<PendingTensor> waiting;
  bool operator==(const Report&) const = default;
};

struct Answer {
  std::vector<Agreement> ready;
  // keys that leave the cache before the entries of `ready` enter it
  std::vector<std::string> forgotten;
  std::vector<uint32_t> leaving;
  std::optional<Settings> settings;
  std::string stalls;  // a report for users; empty if nothing stalls
  bool operator==(const Answer&) const = default;
};

std::string encode(const Report& report);
std::string encode(const Answer& answer);
Result<Report> decode_report(std::string_view bytes);
Result<Answer> decode_answer(std::string_view bytes);

}  // namespace trainyard::gradients
