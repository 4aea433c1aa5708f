// Maps each operation to its function and to the kind of thread that runs it.
//
//   add_quick     answers at once and never blocks (no disk, no waiting): on an I/O thread
//   add           may block (disk): on a thread of the stream pool
//   add_later     answers through a callback, from any thread, once: the call itself must not block
//   add_streamed  S3 bodies: reads the request's body and writes the reply's piece by piece, on a stream thread
//   add_long      S3: blocks for longer than clients wait; the reply begins before the function returns
//
// By the time a function is called, the request is authenticated, authorised, decoded, and its shape has been checked against
// every constraint of the model: required members are set; lengths, ranges, patterns and enumerations hold (S3: required
// members only).
//
// Threads: filled once by make_api; the functions are called from many threads at once.
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
  // The next bytes of the object: transfer coding and aws-chunked framing removed; 0 at the end, and only
  // after all that the client signed (the hash, each chunk's signature, the trailer's) was found right.
  // Errors: denied (it was not), invalid (framing, length), unavailable (the connection).
  virtual Result<size_t> read(std::span<char> buffer) = 0;
  // How many bytes read() will yield, where the head says so.
  virtual std::optional<uint64_t> body_bytes() const = 0;
  // Trailers of the body, lower-case names: x-amz-checksum-crc32. Requires: read() answered 0.
  virtual const std::map<std::string, std::string>& trailers() const = 0;
  virtual Result<void> start_erased(const void* output, std::optional<uint64_t> content_length,
                                    int status) = 0;
  virtual Result<void> write(std::span<const char> bytes) = 0;
  // Returns when `work` has, which runs on another thread, and shows the client meanwhile that it does.
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
  // Sends the reply's head: the header members of `output`. status 0: the model's. Once; then
  // `content_length` bytes by write(). An operation without bytes to send needs neither: it returns its
  // output.
  Result<void> start(const typename Operation::Output& output, uint64_t content_length, int status = 0) {
    return ends_.start_erased(&output, content_length, status);
  }
  Result<void> write(std::span<const char> bytes) { return ends_.write(bytes); }

 private:
  ExchangeEnds& ends_;
};

enum class Runs { quick, blocking, later, streamed, lasting };

// Fills a structure from the request; a failure when the request does not fit it.
using Decode = std::function<std::optional<Failure>(void* input)>;
// Takes the answer, once: an output, or a failure.
using Finish = std::function<void(const void* output, const Failure* failure)>;

struct Entry {
  const shapes::OperationShape* shape = nullptr;
  Runs runs = Runs::blocking;
  std::function<void(const Context&, const Decode&, Finish)> call;
  // Answers nothing when the function has sent its own reply.
  std::function<void(const Context&, const Decode&, ExchangeEnds&, const Finish&)> stream;
  // Decodes an input and drops it: what `decode` answers.
  std::function<std::optional<Failure>(const Decode&)> inspect;
};

template <class T>
using Answer = std::function<void(Outcome<T>)>;

class OperationTable {
 public:
  template <class Operation>
  using Function =
      std::function<Outcome<typename Operation::Output>(const Context&, const typename Operation::Input&)>;

  template <class Operation>
  void add(Function<Operation> function) {
    put<Operation>(Runs::blocking, std::move(function));
  }

  template <class Operation>
  void add_quick(Function<Operation> function) {
    put<Operation>(Runs::quick, std::move(function));
  }

  template <class Operation>
  void add_later(
      std::function<void(const Context&, typename Operation::Input, Answer<typename Operation::Output>)>
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

  // The function returns nullopt when it has called start() itself, and else what to reply.
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
        } catch (const std::exception& fault) {  // the reply may have begun, so it is reported here
          outcome.emplace(internal("the operation threw: " + std::string(fault.what())));
        }
      });
      answer(finish, *service, *outcome);
    };
  }

  // nullptr: not answered here.
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
  static void answer(const Finish& finish, const shapes::Service& service, const Outcome<Output>& outcome) {
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
