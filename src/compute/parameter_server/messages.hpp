// Defines the requests of workers to parameter servers, the answers, and the encoding of both: a
// kind byte, then the fields in order (base/bytes/fields.hpp). docs/formats/parameter-server.md has
// the table.
//
// Threads: plain values, pure functions. Errors: corrupt, naming message and field.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"

namespace trainyard::parameter_server {

// Limits what a length from a peer can allocate; many slices fit.
inline constexpr uint64_t kMessageBytesMax = uint64_t{64} << 20;
// Values of one message; 1024 bytes are more than its other fields need.
inline constexpr uint64_t kValuesBytesMax = kMessageBytesMax - 1024;

// Rows of a table that one server stores: the rows in `named`, or, if it is empty, `count` rows
// from `begin` on.
struct Rows {
  uint32_t table = 0;
  uint64_t begin = 0;
  uint64_t count = 0;
  std::vector<uint64_t> named;
};

// Values are f32, little-endian, row after row.
struct Assign {  // sets the rows to these values
  Rows rows;
  std::string values;
};
struct Push {  // a gradient of the rows
  Rows rows;
  std::string values;
};
struct Pull {
  Rows rows;
};
struct Tick {  // the worker has sent all pushes of its round
  uint64_t round = 0;
};
struct Leave {  // the worker sends no further request
  uint8_t version = 1;
};
using Request = std::variant<Assign, Push, Pull, Tick, Leave>;

struct Values {
  std::string values;
};
struct Proceed {  // the worker may begin this round
  uint64_t round = 0;
};
struct Refused {
  std::string why;
};
using Answer = std::variant<Values, Proceed, Refused>;

std::string encode(const Request& request);
std::string encode(const Answer& answer);
Result<Request> decode_request(std::string_view bytes);
Result<Answer> decode_answer(std::string_view bytes);

std::string bytes_of(std::span<const float> values);
// Requires: bytes.size() is 4 * values.size().
void read_values(std::string_view bytes, std::span<float> values);

}  // namespace trainyard::parameter_server
