// OperationTable maps each operation to its function and to the kind of thread that runs it.
//
//   add_quick     returns at once and never blocks (no disk, no waiting); runs on an I/O thread
//   add           may block (disk); runs on a thread of the stream pool
//   add_later     responds through a callback, once, from any thread; the call itself must not
//                 block
//   add_streamed  S3 bodies: reads the request's body and writes the response's piece by piece, on
//                 a stream thread
//   add_long      S3: blocks for longer than a client's timeout; the response begins before the
//                 function returns
//
// A function is called only after its request has been authenticated, authorised, decoded and
// checked against every constraint of the model: required members, lengths, ranges, patterns and
// enumerations (S3: required members only).
//
// Threads: filled once by make_api; the functions are then called from many threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "net/http_server.hpp"
#include "operations/context.hpp"
#include "protocol/errors.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

// ExchangeEnds reads the body of a streamed request and writes its response. Confined to the thread
// that runs the request.
class ExchangeEnds {
 public:
  virtual ~ExchangeEnds() = default;
  virtual const net::RequestHead& head() const = 0;
  // Reads the next bytes of the object, without transfer coding and aws-chunked framing. Returns 0
  // at the end, after all that the client signed (the hash, the signatures of the chunks and of the
  // trailer) has been verified.
  // Errors: denied (verification failed), invalid (framing, length), unavailable (the connection).
  virtual Result<size_t> read(std::span<char> buffer) = 0;
  // The number of bytes that read() will return, if the head has it.
  virtual std::optional<uint64_t> body_bytes() const = 0;
  // Trailers of the body by lower-case name: x-amz-checksum-crc32. Requires: read() has returned 0.
  virtual const std::map<std::string, std::string>& trailers() const = 0;
  virtual Result<void> start_erased(const void* output, std::optional<uint64_t> content_length,
                                    int status) = 0;
  virtual Result<void> write(std::span<const char> bytes) = 0;
  // Runs `work` on another thread until it returns, and meanwhile keeps the client connected.
  virtual void run_long(const std::function<void()>& work) = 0;
};

template <class Operation>
class Exchange {
 public:
  explicit Exchange(ExchangeEnds& ends) : ends_(ends) {}
  const net::RequestHead& head() const { return ends_.head(); }
  Result<size_t> read(std::span<char> buffer) { return ends_.read(buffer); }
  std::optional<uint64_t> body_bytes() const { return ends_.body_bytes(); }
  const std::map<std::string, std::string>& trailers() const { return ends_.trailers(); }
  // Sends the response's head with the header members of `output`; status 0 = the model's status.
  // Call it at most once, then write() `content_length` bytes. An operation without bytes to send
  // returns its output instead.
  Result<void> start(const typename Operation::Output& output, uint64_t content_length,
                     int status = 0) {
    return ends_.start_erased(&output, content_length, status);
  }
  Result<void> write(std::span<const char> bytes) { return ends_.write(bytes); }

 private:
  ExchangeEnds& ends_;
};

enum class Runs { quick, blocking, later, streamed, lasting };

// Fills a structure from the request. Returns a failure if the request does not match its shape.
using Decode = std::function<std::optional<Failure>(void* input)>;
// Called once with the result of the operation: an output, or a failure.
using Finish = std::function<void(const void* output, const Failure* failure)>;

struct Entry {
  const shapes::OperationShape* shape = nullptr;
  Runs runs = Runs::blocking;
  std::function<void(const Context&, const Decode&, Finish)> call;
  // Does not call Finish if the function has sent its own response.
  std::function<void(const Context&, const Decode&, ExchangeEnds&, const Finish&)> stream;
  // Decodes an input, drops it, and returns the failure of `decode`.
  std::function<std::optional<Failure>(const Decode&)> inspect;
};

template <class T>
using Answer = std::function<void(Outcome<T>)>;

class OperationTable {
 public:
  // `function`: (const Context&, const Input&) -> Outcome<Output>, or what converts to it.
  template <class Operation, class Function>
  void add(Function function) {
    put<Operation>(Runs::blocking, std::move(function));
  }

  template <class Operation, class Function>
  void add_quick(Function function) {
    put<Operation>(Runs::quick, std::move(function));
  }

  // `function`: (const Context&, Input, Answer<Output>).
  template <class Operation, class Function>
  void add_later(Function function) {
    put_call(
        Operation::shape(), Runs::later,
        [function = std::move(function)](const Context& context, void* input, Finish finish) {
          Answer<typename Operation::Output> later =
              [finish = std::move(finish)](const Outcome<typename Operation::Output>& outcome) {
                answer<Operation>(finish, outcome);
              };
          function(context, std::move(input_of<Operation>(input)), std::move(later));
        });
  }

  // `function`: (const Context&, const Input&, Exchange<Operation>&) ->
  // Outcome<std::optional<Output>>: nullopt if it has called start(), otherwise its output.
  template <class Operation, class Function>
  void add_streamed(Function function) {
    put_stream(Operation::shape(), Runs::streamed,
               [function = std::move(function)](const Context& context, void* input,
                                                ExchangeEnds& ends, const Finish& finish) {
                 Exchange<Operation> exchange(ends);
                 Outcome<std::optional<typename Operation::Output>> outcome =
                     function(context, std::as_const(input_of<Operation>(input)), exchange);
                 if (!outcome) {
                   const Failure failure = outcome.failure(*Operation::shape().service);
                   finish(nullptr, &failure);
                 } else if (*outcome) {
                   finish(&**outcome, nullptr);
                 }
               });
  }

  template <class Operation, class Function>
  void add_long(Function function) {
    put_stream(Operation::shape(), Runs::lasting,
               [function = std::move(function)](const Context& context, void* input,
                                                ExchangeEnds& ends, const Finish& finish) {
                 std::optional<Outcome<typename Operation::Output>> outcome;
                 ends.run_long([&] {
                   try {
                     outcome.emplace(function(context, std::as_const(input_of<Operation>(input))));
                   } catch (const std::exception& fault) {
                     // The response may have begun, so the fault becomes its result.
                     outcome.emplace(internal("the operation threw: " + std::string(fault.what())));
                   }
                 });
                 answer<Operation>(finish, *outcome);
               });
  }

  // Returns nullptr for an operation that is not implemented.
  const Entry* find(const shapes::OperationShape& shape) const;

 private:
  // Functions whose types do not depend on the operation, so that their common code is compiled
  // once. `input`: a decoded structure of the operation's input.
  using Call = std::function<void(const Context&, void* input, Finish)>;
  using StreamCall = std::function<void(const Context&, void* input, ExchangeEnds&, const Finish&)>;

  Entry& entry_of(const shapes::OperationShape& shape, Runs runs);
  void put_call(const shapes::OperationShape& shape, Runs runs, Call call);
  void put_stream(const shapes::OperationShape& shape, Runs runs, StreamCall call);

  template <class Operation>
  static typename Operation::Input& input_of(void* input) {
    return *static_cast<typename Operation::Input*>(input);
  }

  template <class Operation>
  static void answer(const Finish& finish, const Outcome<typename Operation::Output>& outcome) {
    if (outcome) return finish(&*outcome, nullptr);
    const Failure failure = outcome.failure(*Operation::shape().service);
    finish(nullptr, &failure);
  }

  template <class Operation, class Function>
  void put(Runs runs, Function function) {
    put_call(Operation::shape(), runs,
             [function = std::move(function)](const Context& context, void* input,
                                              const Finish& finish) {
               answer<Operation>(finish,
                                 function(context, std::as_const(input_of<Operation>(input))));
             });
  }

  std::map<const shapes::OperationShape*, Entry> entries_;
};

}  // namespace trainyard::api
