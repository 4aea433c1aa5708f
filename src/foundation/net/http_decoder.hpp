// HttpDecoder decodes requests from a stream of bytes: headers, and bodies without their transfer
// coding. It uses no socket: the caller adds bytes, and the decoder reports if it needs more.
// Private to this module.
//
// Call for each request: begin(); head() until it returns done; take_head(); then take_body() until
// the body has ended.
//
// Threads: confined to one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "net/http_server.hpp"

namespace trainyard::net {

class HttpDecoder {
 public:
  explicit HttpDecoder(size_t head_bytes_max);
  ~HttpDecoder();

  // -- bytes in
  // Returns a buffer of at least `bytes` bytes for the next bytes. The caller reports by filled()
  // how many have arrived.
  std::span<char> free_space(size_t bytes);
  void filled(size_t bytes);
  // Returns the number of bytes that have arrived and are not decoded yet.
  size_t waiting() const;
  void drop_waiting();
  // Removes and returns all waiting bytes.
  std::string take_waiting();
  // Frees memory beyond `bytes`. Requires: no byte is waiting.
  void shrink_to(size_t bytes);

  // -- requests out
  struct Fault {
    int status;  // of the response
    std::string explanation;
  };
  enum class Step { done, more, fault };

  void begin();
  Step head();
  // Sets all members of `head` except `tls` and `peer`. Fails if the request requires an
  // unsupported feature. Requires: head() returned done.
  Step take_head(RequestHead& head);
  // Returns the reason of the last fault.
  const Fault& fault() const { return fault_; }

  bool keep_alive() const;
  bool is_http_1_0() const { return is_http_1_0_; }
  bool is_head_method() const { return is_head_method_; }
  bool expects_continue() const { return expects_continue_; }

  bool body_left() const {
    return body_ == Body::sized ? remaining_ > 0 : body_ == Body::chunked && !chunks_ended_;
  }
  // Returns the bytes of the declared length that were not read; 0 for chunked bodies, which
  // declare none.
  uint64_t declared_left() const { return remaining_; }
  // Decodes body bytes into `out`, and sets `got` to their number. done with 0 bytes: the body has
  // ended.
  Step take_body(std::span<char> out, size_t& got);
  // Returns true if the next bytes of the body may be read directly into their destination, without
  // this decoder. The caller reports by bypassed() how many were read.
  bool may_bypass() const { return body_ == Body::sized && waiting() == 0; }
  void bypassed(size_t bytes) { remaining_ -= bytes; }

 private:
  enum class Body { none, sized, chunked };
  struct State;

  Step fail(int status, std::string explanation);
  Step take_chunks(std::span<char> out, size_t& got);

  const size_t head_bytes_max_;
  std::unique_ptr<State> state_;
  Fault fault_ = {};
  Body body_ = Body::none;
  uint64_t remaining_ = 0;
  bool chunks_ended_ = false;
  bool expects_continue_ = false;
  bool is_http_1_0_ = false;
  bool is_head_method_ = false;
};

}  // namespace trainyard::net
