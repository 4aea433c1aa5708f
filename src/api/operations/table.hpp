// Maps each operation to its function and to the kind of thread that runs it.
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

// The two ends of a streamed request. Confined to the thread that runs it.
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
  // Sends the response's head with the header members of `output`; status 0 is the model's status.
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
// Takes the result of the operation, an output or a failure; called once.
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
  template <class Operation>
  using Function = std::function<Outcome<typename Operation::Output>(
      const Context&, const typename Operation::Input&)>;

  template <class Operation>
  void add(Function<Operation> function) {
    put<Operation>(Runs::blocking, std::move(function));
  }

  template <class Operation>
  void add_quick(Function<Operation> function) {
    put<Operation>(Runs::quick, std::move(function));
  }

  template <class Operation>
  void add_later(std::function<void(const Context&, typename Operation::Input,
                                    Answer<typename Operation::Output>)>
                     function) {
    Entry& entry = entry_for<Operation>(Runs::later);
    entry.call = [function = std::move(function), service = Operation::shape().service](
                     const Context& context, const Decode& decode, Finish finish) {
      typename Operation::Input input;
      if (const auto failure = decode(&input)) return finish(nullptr, &*failure);
      function(context, std::move(input),
               [finish = std::move(finish), service](Outcome<typename Operation::Output> outcome) {
                 answer(finish, *service, outcome);
               });
    };
  }

  // The function returns nullopt if it has called start(), otherwise its output.
  template <class Operation>
  void add_streamed(std::function<Outcome<std::optional<typename Operation::Output>>(
                        const Context&, const typename Operation::Input&, Exchange<Operation>&)>
                        function) {
    Entry& entry = entry_for<Operation>(Runs::streamed);
    entry.stream = [function = std::move(function), service = Operation::shape().service](
                       const Context& context, const Decode& decode, ExchangeEnds& ends,
                       const Finish& finish) {
      typename Operation::Input input;
      if (const auto failure = decode(&input)) return finish(nullptr, &*failure);
      Exchange<Operation> exchange(ends);
      auto outcome = function(context, input, exchange);
      if (!outcome) {
        const Failure failure = outcome.failure(*service);
        finish(nullptr, &failure);
      } else if (*outcome) {
        finish(&**outcome, nullptr);
      }
    };
  }

  template <class Operation>
  void add_long(Function<Operation> function) {
    Entry& entry = entry_for<Operation>(Runs::lasting);
    entry.stream = [function = std::move(function), service = Operation::shape().service](
                       const Context& context, const Decode& decode, ExchangeEnds& ends,
                       const Finish& finish) {
      typename Operation::Input input;
      if (const auto failure = decode(&input)) return finish(nullptr, &*failure);
      std::optional<Outcome<typename Operation::Output>> outcome;
      ends.run_long([&] {
        try {
          outcome.emplace(function(context, input));
        } catch (
            const std::exception& fault) {  // the response may have begun, so it is reported here
          outcome.emplace(internal("the operation threw: " + std::string(fault.what())));
        }
      });
      answer(finish, *service, *outcome);
    };
  }

  // nullptr: not implemented.
  const Entry* find(const shapes::OperationShape& shape) const;

 private:
  Entry& entry_of(const shapes::OperationShape& shape, Runs runs);

  template <class Operation>
  Entry& entry_for(Runs runs) {
    Entry& entry = entry_of(Operation::shape(), runs);
    entry.inspect = [](const Decode& decode) {
      typename Operation::Input input;
      return decode(&input);
    };
    return entry;
  }

  template <class Output>
  static void answer(const Finish& finish, const shapes::Service& service,
                     const Outcome<Output>& outcome) {
    if (outcome) return finish(&*outcome, nullptr);
    const Failure failure = outcome.failure(service);
    finish(nullptr, &failure);
  }

  template <class Operation>
  void put(Runs runs, Function<Operation> function) {
    Entry& entry = entry_for<Operation>(runs);
    entry.call = [function = std::move(function), service = Operation::shape().service](
                     const Context& context, const Decode& decode, Finish finish) {
      typename Operation::Input input;
      if (const auto failure = decode(&input)) return finish(nullptr, &*failure);
      answer(finish, *service, function(context, input));
    };
  }

  std::map<const shapes::OperationShape*, Entry> entries_;
};

}  // namespace trainyard::api
