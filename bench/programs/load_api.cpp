// Loads a live server with signed requests, next to a server with the same HTTP and SigV4 code and
// a constant response: the difference is the cost of the operation.
//
//   load_api describe --server HOST:PORT --id KEY --secret SECRET --job NAME [--rounds N]
//                     [--peer no]
//   load_api create   --server HOST:PORT --id KEY --secret SECRET --request FILE --prefix NAME
//                     [--rounds N] [--peer no]
//   load_api submit   --server HOST:PORT --id KEY --secret SECRET --request FILE --rounds N
//                     --requests N
//
// Prints a line of JSON for each round. Rounds are interleaved: ours, peer, ours, peer. `submit`
// with 0 rounds sends its requests once, over many connections, and measures nothing. `--peer no`
// leaves the peer's rounds out.

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "base/json.hpp"
#include "base/text.hpp"
#include "bench/load_client.hpp"
#include "net/http_server.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "signing/signing.hpp"

namespace trainyard::bench {
namespace {

constexpr int kRounds = 7;
constexpr size_t kConstantBytes = 2048;  // about the size of a Describe response
constexpr Duration kDescribeLasts = 2s;
constexpr uint64_t kCreateRequests = 2'000;

// The server under load, and the parameters for signing its requests.
struct Target {
  std::string address;
  std::string amz_target;  // "" where the path names the operation
  signing::Keys keys;
  std::string path = "/";
  std::string service = "sagemaker";
};

std::string signed_request(const Target& target, const std::string& body, Instant now) {
  signing::HeaderList headers{{"Host", target.address},
                              {"Content-Type", "application/x-amz-json-1.1"}};
  if (!target.amz_target.empty()) headers.emplace_back("X-Amz-Target", target.amz_target);
  const auto added = signing::sign("POST", target.path, headers, signing::sha256_hex(body),
                                   target.keys, {"us-east-1", target.service}, now);
  headers.insert(headers.end(), added.begin(), added.end());
  std::string request = "POST " + target.path + " HTTP/1.1\r\n";
  for (const auto& [name, value] : headers)
    request.append(name).append(": ").append(value).append("\r\n");
  return request.append("Content-Length: ")
      .append(std::to_string(body.size()))
      .append("\r\n\r\n")
      .append(body);
}

// Runs one round; a refused request ends the bench.
Result<LoadResult> run(const Target& target, Load load,
                       const std::function<std::string(uint64_t)>& body) {
  os::MachineClock clock;
  load.address = target.address;
  load.make_request = [&](uint64_t number) {
    return signed_request(target, body(number), clock.now());
  };
  auto result = TRY(run_load(load));
  if (result.refusals) return internal("the server refused a request: " + result.first_refusal);
  return result;
}

// Verifies each request as the API does, and responds with constant bytes.
class Constant final : public net::Handler {
 public:
  Constant(signing::Keys keys, std::string answer)
      : keys_(std::move(keys)), answer_(std::move(answer)) {}

  Choice choose(const net::RequestHead&) override { return {}; }
  void stream(net::Stream&) override {}
  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override {
    net::Response response;
    const auto& headers = request.headers.fields();
    const auto claim = signing::read_claim(request.target, headers);
    const bool good = claim && *claim &&
                      (*claim)->payload_sha256 == signing::sha256_hex(request.body) &&
                      signing::verify(request.method, request.target, headers, **claim,
                                      keys_.secret_access_key, clock_.now());
    response.status = good ? 200 : 403;
    response.headers.add("Content-Type", "application/x-amz-json-1.1");
    response.body = answer_;
    responder->reply(std::move(response));
  }

 private:
  os::MachineClock clock_;
  const signing::Keys keys_;
  const std::string answer_;
};

void print_round(const char* side, int round, const LoadResult& result) {
  std::printf("%s\n", dump(Json{{"side", side},
                                {"round", round},
                                {"requests_per_second", result.answers_per_second},
                                {"p50_ms", result.p50_ms},
                                {"p99_ms", result.p99_ms},
                                {"client_busy", result.busy_share}})
                          .c_str());
  std::fflush(stdout);
}

struct Rounds {
  uint64_t count = kRounds;
  bool with_peer = true;
};

Result<void> describe(const Target& ours, const std::string& job, const Rounds& rounds) {
  const std::string body = dump(Json{{"TrainingJobName", job}});
  const auto same_body = [&](uint64_t) { return body; };
  Constant constant(ours.keys, std::string(kConstantBytes, ' '));
  net::HttpSettings settings;
  settings.listen = "127.0.0.1:0";
  auto server = TRY(net::serve_http(settings, constant));
  Target peer = ours;
  peer.address = "127.0.0.1:" + std::to_string(server->port());
  Load load;
  load.lasts = kDescribeLasts;
  for (uint64_t round = 0; round < rounds.count; ++round) {
    print_round("ours", round, TRY(run(ours, load, same_body).in("describing " + job)));
    if (rounds.with_peer) print_round("peer", round, TRY(run(peer, load, same_body)));
  }
  server->stop(1s);
  return {};
}

constexpr size_t kManyConnections = 64;

// Sends the same request repeatedly; each request creates a job. Compares many connections with
// one.
Result<void> submit(const Target& ours, const std::string& request, uint64_t rounds,
                    uint64_t requests) {
  Load load;
  load.warm_up = 0ms;
  load.lasts = 600s;
  const auto body = [&](uint64_t) { return request; };
  for (uint64_t round = 0; round < std::max<uint64_t>(rounds, 1); ++round) {
    load.connections = kManyConnections;
    load.requests_max = requests;
    print_round("ours", int(round), TRY(run(ours, load, body)));
    if (rounds == 0) break;
    load.connections = 1;
    load.requests_max = std::max<uint64_t>(requests / 8, 1);
    print_round("peer", int(round), TRY(run(ours, load, body)));
  }
  return {};
}

// Compares many connections, whose creates share commits, with one connection, whose creates do
// not.
Result<void> create(const Target& ours, const Json& request, const std::string& prefix,
                    const Rounds& rounds) {
  for (uint64_t round = 0; round < rounds.count; ++round) {
    for (const size_t connections : {kManyConnections, size_t(1)}) {
      if (connections == 1 && !rounds.with_peer) continue;
      Load load;
      load.connections = connections;
      load.warm_up = 0ms;
      load.lasts = 60s;
      load.requests_max = connections == 1 ? kCreateRequests / 8 : kCreateRequests;
      const auto body = [&](uint64_t number) {
        Json one = request;
        one["TrainingJobName"] = prefix + "-" + std::to_string(round) + "-" +
                                 std::to_string(connections) + "-" + std::to_string(number);
        return dump(one);
      };
      print_round(connections == 1 ? "peer" : "ours", int(round), TRY(run(ours, load, body)));
    }
  }
  return {};
}

Result<void> main_of(const std::string& what, std::map<std::string, std::string> options) {
  Target ours{options["--server"], "", {options["--id"], options["--secret"], ""}};
  Rounds rounds;
  if (options.contains("--rounds")) rounds.count = uint64_t(TRY(parse_int(options["--rounds"])));
  rounds.with_peer = options["--peer"] != "no";
  if (what == "describe") {
    ours.amz_target = "SageMaker.DescribeTrainingJob";
    return describe(ours, options["--job"], rounds);
  }
  if (what == "create") {
    ours.amz_target = "SageMaker.CreateTrainingJob";
    return create(ours, TRY(parse_json(TRY(os::read_file(options["--request"])))),
                  options["--prefix"], rounds);
  }
  if (what == "submit") {
    ours.path = "/v1/submitjob";
    ours.service = "batch";
    return submit(ours, TRY(os::read_file(options["--request"])), rounds.count,
                  uint64_t(TRY(parse_int(options["--requests"]))));
  }
  return invalid("usage: load_api describe|create|submit --OPTION VALUE ..");
}

}  // namespace
}  // namespace trainyard::bench

int main(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 2; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  const auto done = trainyard::bench::main_of(argc > 1 ? argv[1] : "", options);
  if (!done) std::fprintf(stderr, "load_api: %s\n", done.error().message.c_str());
  return done ? 0 : 1;
}
