// Encodes the messages between the entries of one gang. Grammar and sizes: docs/formats/gang.md.
//
// Every host of a distribution connects to the leading host. Both prove possession of the gang's
// secret. Then each frame has a MAC of its bytes, its position in the stream and its direction, so
// that frames cannot be changed, repeated, reordered or reflected.
//
// The same messages, without MACs, are sent between a launcher's helper processes and the entry of
// their host.
//
// Threads: a Sealer or an Opener is confined to one thread; the rest is pure. Errors: corrupt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.hpp"

namespace trainyard::entry {

inline constexpr uint8_t kGangVersion = 1;
inline constexpr size_t kFrameBytesMax = 256 << 10;  // the longest is a daemon's command line
inline constexpr size_t kNonceBytes = 16;
inline constexpr size_t kSealBytes = 16;

// -- between hosts
struct Challenge {  // from the leading host, first
  uint8_t version = kGangVersion;
  std::string nonce;
};
struct Join {  // from another host, the answer to Challenge
  std::string nonce;
  std::string host;
  std::string proof;  // proof_of_host()
};
struct Go {};    // all have joined: start
struct Done {};  // all processes of this host have ended with code 0
struct Failed {  // the first process of this host that failed
  int32_t rank = 0;
  int32_t code = 1;
  std::string text;
};
struct End {  // to all hosts: end with this code; after a failure, with its host and text
  int32_t code = 0;
  std::string host;
  std::string text;
};
struct Run {  // run this command line (a launcher's daemon) with a shell
  uint32_t number = 0;
  std::string line;
};
struct Ended {  // the result of Run
  uint32_t number = 0;
  int32_t code = 0;
};
// -- from a helper process to the entry of its own host
struct RunOn {  // run this command line on that host; answered by Ended
  std::string host;
  std::string line;
};
struct Rank {  // the sender is this rank; not answered
  int32_t rank = 0;
};

using Message = std::variant<Challenge, Join, Go, Done, Failed, End, Run, Ended, RunOn, Rank>;

// A payload: kind byte and fields.
std::string encode(const Message& message);
Result<Message> decode(std::string_view payload);

std::string proof_of_host(std::string_view secret, std::string_view challenge_nonce,
                          const Join& join);
std::string session_key(std::string_view secret, std::string_view challenge_nonce,
                        std::string_view join_nonce);

// Writes length:u32 payload [seal].
class Sealer {
 public:
  Sealer() = default;  // without seals, before authentication
  Sealer(std::string key, char direction) : key_(std::move(key)), direction_(direction) {}
  std::string seal(const Message& message);

 private:
  std::string key_;
  char direction_ = 0;
  uint64_t sent_ = 0;
};

class Opener {
 public:
  Opener() = default;
  void expect_seals(std::string key, char direction);
  void add(std::string_view bytes) { pending_ += bytes; }
  // Returns the next message, when it is complete.
  Result<std::optional<Message>> next();

 private:
  std::string key_;
  char direction_ = 0;
  uint64_t received_ = 0;
  std::string pending_;
};

inline constexpr char kToLeader = '>';
inline constexpr char kFromLeader = '<';

}  // namespace trainyard::entry
