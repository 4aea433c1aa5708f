// Accesses objects at an S3 endpoint: of AWS, of another Trainyard, or of this one.
//
// Requests have path-style URLs and are signed by signing::sign. Bodies are streamed: a get through
// a bounded buffer; a put in parts of part_bytes (one plain PUT if it fits in one part), each of
// which is kept in memory until it is acknowledged, so it can be sent again. Up to kPartsAtOnceMax
// (part_sender.hpp) parts of a put are sent at once; these and the next one are in memory.
// Repeatable calls are retried after connection errors, 429 and 5xx, with growing pauses. A get
// whose connection breaks continues at the same byte, if the object is unchanged.
//
// A whole object, or a part that is read by its number, is compared with the checksum of all its
// bytes that the endpoint has (verifier.hpp).
//
// Threads: callable from anywhere; each call uses its own connection, which later calls reuse. A
// writer of several parts has its own threads. If it is destroyed without commit(), it waits for
// the requests that are being sent, but does not repeat them. Errors: the endpoint's own message,
// with the corresponding kind; unavailable after the last attempt. Requires: the program ignores
// SIGPIPE.
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
  // called before each attempt, because temporary keys may have been renewed
  std::function<signing::Keys()> keys;
  std::string ca_bundle;  // PEM file; "" = the system's
  std::string proxy;      // "" = none; the environment is not used

  // with the pauses below about 15 s: longer than a restart of the endpoint
  int attempts_max = 8;
  Duration first_pause = 200ms;  // before the second attempt; doubled after each, up to pause_max
  Duration pause_max = 5s;
  Duration connect_limit = 10s;
  Duration idle_limit = 60s;         // an attempt that transfers no byte within this time fails
  uint64_t part_bytes = 8 << 20;     // the size of a put's parts; at least kPartBytesMin
  size_t idle_connections_max = 16;  // connections that are kept for later calls
};

// Sends nothing yet. Errors: invalid (endpoint).
Result<std::unique_ptr<Objects>> open_s3(S3Settings settings, Clock& clock);

}  // namespace trainyard::objects
