// Accesses objects at an S3 endpoint: AWS's, another Trainyard's, or our own.
//
// Path style, signed by signing::sign. Bodies stream: a get through a bounded buffer, a put in
// parts of part_bytes (one plain PUT when it fits in one), each held until it is acknowledged, so
// that it can be sent again. Repeatable calls are retried after connection errors, 429 and 5xx,
// with growing pauses; a get that breaks off continues at the same byte, if the object is
// unchanged.
//
// Threads: callable from anywhere; each call uses a connection of its own, kept for the next.
// Errors: the endpoint's own message, with the kind that fits; unavailable when the attempts are
// used up.
// Requires: the program ignores SIGPIPE.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "objects/objects.hpp"
#include "signing/signing.hpp"

namespace trainyard::objects {

struct S3Settings {
  std::string endpoint;  // "https://s3.eu-west-1.amazonaws.com", "http://127.0.0.1:4566"
  std::string region;
  // called before each attempt: temporary keys may have been renewed
  std::function<signing::Keys()> keys;
  std::string ca_bundle;  // PEM file; "" = the system's
  std::string proxy;      // "" = none; the environment is not used

  // with the pauses below some 15 s: longer than a restart of the endpoint
  int attempts_max = 8;
  Duration first_pause = 200ms;  // before the second attempt; doubles, up to
  Duration pause_max = 5s;
  Duration connect_limit = 10s;
  Duration idle_limit = 60s;  // without a byte within this time an attempt ends
  // of a put: the bytes that one writer holds. At least kPartBytesMin
  uint64_t part_bytes = 8 << 20;
  size_t idle_connections_max = 16;  // kept for the next calls
};

// Errors: invalid (endpoint). Nothing is sent yet.
Result<std::unique_ptr<Objects>> open_s3(S3Settings settings, Clock& clock);

}  // namespace trainyard::objects
