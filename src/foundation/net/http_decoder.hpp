// Requests out of a stream of bytes: heads, and bodies with their coding removed. Touches no socket: whoever
// reads puts bytes in, and is told when more are needed. Inside host only.
//
// For each request: begin(); head() until it is whole; take_head(); then the body by take_body() until none
// is left.
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
  // Where the next bytes go, at least `bytes` of them; filled() says how many came.
  std::span<char> room(size_t bytes);
  void filled(size_t bytes);
  // Bytes that came and are not decoded yet.
  size_t waiting() const;
  void forget_waiting();
  // All that waits, and it waits no more.
  std::string take_waiting();
  // Gives memory beyond `bytes` back. Requires: nothing is waiting.
  void shrink_to(size_t bytes);

  // -- requests out
  struct Fault {
    int status;  // what to answer
    std::string words;
  };
  enum class Step { done, more, fault };

  void begin();
  Step head();
  // Requires: head() said done. Fills all but `tls` and `peer`. A fault when it asks for what is not known
  // here.
  Step take_head(RequestHead& head);
  // Why the last step was a fault.
  const Fault& fault() const { return fault_; }

  bool keep_alive() const;
  bool is_http_1_0() const { return is_http_1_0_; }
  bool is_head_method() const { return is_head_method_; }
  bool expects_continue() const { return expects_continue_; }

  bool body_left() const {
    return body_ == Body::sized ? remaining_ > 0 : body_ == Body::chunked && !chunks_ended_;
  }
  // The announced length that has not been taken; 0 for chunked bodies, which announce none.
  uint64_t announced_left() const { return remaining_; }
  // Decodes into `out`; `got` says how much. Done with nothing got: the body has ended.
  Step take_body(std::span<char> out, size_t& got);
  // Whether the next bytes of the body may be read past us, straight to where they belong; passed_by() says
  // how many.
  bool may_pass_by() const { return body_ == Body::sized && waiting() == 0; }
  void passed_by(size_t bytes) { remaining_ -= bytes; }

 private:
  enum class Body { none, sized, chunked };
  struct State;

  Step fail(int status, std::string words);
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
