#include "net/http_server.hpp"

#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <any>
#include <atomic>
#include <future>
#include <map>
#include <thread>

#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "net/http_listener.hpp"
#include "net/testing/http_test_client.hpp"

namespace trainyard::net {
namespace {

TEST_F(Http, AnswersSeveralRequestsOnOneConnection) {
  serve();
  RawClient client = this->client();
  for (int i = 0; i < 3; i++) {
    const Answer answer =
        client.exchange("POST /a%20b?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "/a%20b?x=1|hello");
    EXPECT_EQ(answer.headers.get("x-method"), "POST");
    EXPECT_TRUE(parse_http_date(answer.headers.get("Date")));
    EXPECT_FALSE(answer.headers.has("Connection"));
  }
  const Answer last = client.exchange("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(last.headers.get("Connection"), "close");
  EXPECT_TRUE(client.closed());
}

TEST_F(Http, PassesTheHeadToTheHandler) {
  RequestHead seen;
  handler.on_handle = [&](Request request, std::unique_ptr<Responder> responder) {
    seen = request;
    responder->reply({});
  };
  serve();
  RawClient client = this->client();
  client.exchange(
      "PUT /p/q?a=b?c HTTP/1.1\r\nHost: h\r\nX-Twice: 1\r\nx-twice:  2 \r\nContent-Length: "
      "0\r\n\r\n");
  EXPECT_EQ(seen.method, "PUT");
  EXPECT_EQ(seen.path(), "/p/q");
  EXPECT_EQ(seen.query(), "a=b?c");
  EXPECT_EQ(seen.content_length, 0u);
  EXPECT_FALSE(seen.tls);
  EXPECT_TRUE(seen.peer.starts_with("127.0.0.1:"));
  EXPECT_EQ(seen.headers.get("X-TWICE"), "1");
  EXPECT_EQ(seen.headers.fields().at(2), std::pair(std::string("x-twice"), std::string("2")));
}

TEST(RequestHead, NamesThePeersAddress) {
  RequestHead head;
  head.peer = "127.0.0.1:51234";
  EXPECT_EQ(head.peer_address(), "127.0.0.1");
  head.peer = "[::1]:51234";
  EXPECT_EQ(head.peer_address(), "::1");
}

TEST_F(Http, PipelinedRequestsAreAnsweredInOrder) {
  serve();
  RawClient client = this->client();
  std::string all;
  for (int i = 0; i < 100; i++)
    all += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
  std::thread speaker([&] { client.send(all); });
  for (int i = 0; i < 100; i++) EXPECT_EQ(client.receive().body, "/" + std::to_string(i) + "|abc");
  speaker.join();
}

TEST_F(Http, JoinsChunkedBodies) {
  serve();
  RawClient client = this->client();
  const std::string request =
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n";
  EXPECT_EQ(client.exchange(request).body, "/c|abc0123456789");
  for (const char byte : request) client.send(std::string(1, byte));
  EXPECT_EQ(client.receive().body, "/c|abc0123456789");
  EXPECT_EQ(client.exchange("POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").status,
            400);
  EXPECT_TRUE(client.closed());
}

TEST_F(Http, AnswersExpectContinue) {
  serve();
  RawClient client = this->client();
  client.send("PUT /e HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  EXPECT_EQ(client.exchange("body").body, "/e|body");
  EXPECT_EQ(
      client.exchange("PUT /e HTTP/1.1\r\nExpect: miracles\r\nContent-Length: 4\r\n\r\n").status,
      417);
}

TEST_F(Http, AnswersFromAnotherThread) {
  std::vector<std::thread> threads;
  Mutex mutex;
  handler.on_handle = [&](Request request, std::unique_ptr<Responder> responder) {
    const MutexLock lock(mutex);
    threads.emplace_back([request = std::move(request), responder = std::move(responder)] {
      responder->reply({201, {}, request.body});
    });
  };
  serve();
  RawClient client = this->client();
  for (int i = 0; i < 50; i++) {
    const Answer answer = client.exchange("POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(answer.body, "x");
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Http, ADestroyedResponderAnswers500) {
  handler.on_handle = [](Request, std::unique_ptr<Responder>) {};
  handler.on_stream = [](Stream&) {};
  serve();
  RawClient client = this->client();
  EXPECT_EQ(client.exchange("GET / HTTP/1.1\r\n\r\n").status, 500);
  EXPECT_EQ(client.exchange("GET /stream HTTP/1.1\r\n\r\n").status, 500);
}

TEST_F(Http, AnswersToHeadHaveALengthAndNoBody) {
  handler.on_stream = [](Stream& stream) {
    stream.start(200, {}, 1000).value();
    stream.write(std::string(1000, 'x')).value();
  };
  serve();
  RawClient client = this->client();
  client.send(
      "HEAD /12345 HTTP/1.1\r\nHost: h\r\n\r\nHEAD /stream HTTP/1.1\r\nHost: h\r\n\r\nGET /after "
      "HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.receive(true).headers.get("Content-Length"), "7");
  EXPECT_EQ(client.receive(true).headers.get("Content-Length"), "1000");
  EXPECT_EQ(client.receive().body, "/after|");
}

TEST_F(Http, AnswersStreamedRequests) {
  serve();
  RawClient client = this->client();
  for (int i = 0; i < 3; i++)
    EXPECT_EQ(client.exchange("GET /stream HTTP/1.1\r\n\r\n").body, "streamed");
}

// -- limits ---------------------------------------------------------------------------------------

TEST_F(Http, MalformedHeadsAreAnswered400) {
  serve();
  for (const std::string_view garbage :
       {"\r\n\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "GET / HTTP/1.1\nHost: h\n\n",
        "\x01\x02\x03\x04\r\n\r\n", "GET / HTTP/1.1\r\nNo colon\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n"}) {
    RawClient client = this->client();
    client.send(garbage);
    EXPECT_EQ(client.receive().status, 400) << garbage;
    EXPECT_TRUE(client.closed());
  }
  RawClient client = this->client();
  EXPECT_EQ(client.exchange("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n").status, 501);
}

TEST_F(Http, HeadsPastTheLimitAreAnswered431) {
  settings.head_bytes_max = 8000;
  serve();
  const std::string fits = "GET /x HTTP/1.1\r\nA: " + std::string(7000, 'a') + "\r\n\r\n";
  RawClient good = client();
  EXPECT_EQ(good.exchange(fits + fits).status, 200);
  EXPECT_EQ(good.receive().status, 200);
  for (const std::string& large :
       {"GET /x HTTP/1.1\r\nA: " + std::string(100'000, 'a') + "\r\n\r\n",
        "GET /" + std::string(100'000, 'x'), std::string(100'000, 'A')}) {
    RawClient client = this->client();
    client.send(large);
    const int status = client.receive().status;
    EXPECT_TRUE(status == 431 || status == 400) << status << large.substr(0, 20);
    EXPECT_TRUE(client.closed());
  }
}

TEST_F(Http, Answers413WhileATooLargeBodyIsSent) {
  serve();  // the limit is 1 MiB
  const std::string body(8 << 20, 'b');
  RawClient announced = client();
  announced.send("POST / HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
  announced.send(body);
  EXPECT_EQ(announced.receive().status, 413);
  EXPECT_TRUE(announced.closed());
  RawClient chunked = client();
  chunked.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n800000\r\n");
  chunked.send(body);
  EXPECT_EQ(chunked.receive().status, 413);
  RawClient requesting = client();
  EXPECT_EQ(
      requesting
          .exchange("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 8000000\r\n\r\n")
          .status,
      413);
  RawClient just_fits = client();
  just_fits.send("POST /f HTTP/1.1\r\nContent-Length: 1048576\r\n\r\n");
  just_fits.send(body.substr(0, 1 << 20));
  EXPECT_EQ(just_fits.receive().body.size(), (1u << 20) + 3);
}

TEST_F(Http, LimitsAllBodiesTogether) {
  settings.buffered_bytes_max = 600'000;
  std::promise<std::unique_ptr<Responder>> requested;
  handler.on_handle = [&](Request request, std::unique_ptr<Responder> responder) {
    if (request.path() == "/held")
      requested.set_value(std::move(responder));
    else
      responder->reply({});
  };
  serve();
  const std::string request =
      " HTTP/1.1\r\nContent-Length: 600000\r\n\r\n" + std::string(600'000, 'b');
  RawClient holder = client(), other = client(), later = client();
  holder.send("POST /held" + request);
  const std::unique_ptr<Responder> responder = requested.get_future().get();
  EXPECT_EQ(other.exchange("POST /" + request).status, 503);
  RawClient small = client();
  EXPECT_EQ(
      small.exchange("POST / HTTP/1.1\r\nContent-Length: 60000\r\n\r\n" + std::string(60'000, 'b'))
          .status,
      200)
      << "small ones continue";
  responder->reply({});
  EXPECT_EQ(holder.receive().status, 200);
  EXPECT_EQ(later.exchange("POST /" + request).status, 200);
}

TEST_F(Http, SlowHeadersAreAnswered408EvenIfBytesKeepArriving) {
  settings.idle_limit = 200ms;
  serve();
  RawClient client = this->client();
  pollfd answered = {client.descriptor(), POLLIN, 0};
  client.send("GET / HTTP/1.1\r\nA: ");
  for (int i = 0; i < 2000 && ::poll(&answered, 1, 30) == 0; i++) client.send("a");
  EXPECT_EQ(client.receive().status, 408);
}

TEST_F(Http, SlowBodiesAreAnswered408AndIdleConnectionsClosed) {
  settings.idle_limit = 200ms;
  serve();
  RawClient slow = client(), idle = client(), untouched = client();
  slow.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n123");
  EXPECT_EQ(idle.exchange("GET / HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_EQ(slow.receive().status, 408);
  EXPECT_TRUE(idle.closed());
  EXPECT_TRUE(untouched.closed());
}

TEST_F(Http, ConnectionsBeyondTheLimitAreRefusedWithAnExplanation) {
  settings.connections_max = 2;
  serve();
  RawClient first = client(), second = client();
  EXPECT_EQ(first.exchange("GET / HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_EQ(second.exchange("GET / HTTP/1.1\r\n\r\n").status, 200);
  RawClient third = client();
  EXPECT_EQ(third.receive().status, 503);
  first.close();
  int status = 0;
  // until the server has noticed the end of the first one
  for (int i = 0; i < 1000 && status != 200; i++) {
    RawClient fourth = client();
    status = fourth.exchange("GET / HTTP/1.1\r\n\r\n").status;
  }
  EXPECT_EQ(status, 200);
}

TEST_F(Http, RejectsRequestsWithoutReadingTheirBody) {
  handler.on_choose = [](const RequestHead& head) {
    Handler::Choice choice;
    if (head.path() == "/refused") choice.refusal = Response{403, {}, "no"};
    return choice;
  };
  serve();
  RawClient waits = client();
  const Answer answer = waits.exchange(
      "PUT /refused HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_EQ(answer.status, 403);
  EXPECT_TRUE(waits.closed());
  RawClient large = client();
  large.send("PUT /refused HTTP/1.1\r\nContent-Length: 100000000\r\n\r\nabc");
  EXPECT_EQ(large.receive().status, 403) << "answered before the body is here";
  RawClient small = client();
  for (int i = 0; i < 3; i++) {
    small.send("PUT /refused HTTP/1.1\r\nContent-Length: 1000\r\n\r\n");
    EXPECT_EQ(small.receive().status, 403);
    small.send(std::string(1000, 'b'));
  }
  small.send("POST /refused HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(small.receive().status, 403);
  EXPECT_EQ(small.exchange("POST /taken HTTP/1.1\r\nContent-Length: 1\r\n\r\nx").body, "/taken|x");
}

TEST_F(Http, SlowBodiesOfBlockingRequestsOccupyNoThread) {
  settings.stream_threads_max = 1;
  handler.on_choose = [](const RequestHead&) { return Handler::Choice{Intake::blocking, 1 << 20}; };
  serve();
  std::vector<RawClient> slow;
  for (int i = 0; i < 8; i++) {
    slow.push_back(client());
    slow.back().send("POST /slow HTTP/1.1\r\nContent-Length: 6\r\n\r\nabc");
  }
  RawClient other = client();
  for (int i = 0; i < 10; i++)
    EXPECT_EQ(other.exchange("POST /other HTTP/1.1\r\nContent-Length: 1\r\n\r\nx").body,
              "/other|x");
  for (RawClient& client : slow) EXPECT_EQ(client.exchange("def").body, "/slow|abcdef");
}

TEST_F(Http, PassesTheFindingOfChooseToTheHandler) {
  struct Found {
    std::string path;
  };
  handler.on_choose = [](const RequestHead& head) {
    Handler::Choice choice;
    if (head.path().starts_with("/stream")) choice.intake = Intake::streamed;
    choice.finding = Found{std::string(head.path())};
    return choice;
  };
  const auto path_of = [](const RequestHead& head) {
    const auto* found = std::any_cast<Found>(&head.finding);
    return found ? found->path : "none";
  };
  handler.on_handle = [&](Request request, std::unique_ptr<Responder> responder) {
    responder->reply({200, {}, path_of(request)});
  };
  handler.on_stream = [&](Stream& stream) {
    stream.reply({200, {}, path_of(stream.head())}).value();
  };
  serve();
  RawClient client = this->client();
  for (const std::string path : {"/a", "/stream/b", "/c"})
    EXPECT_EQ(client.exchange("GET " + path + " HTTP/1.1\r\n\r\n").body, path);
}

// Connections without an accepted request cannot prevent other connections.
TEST_F(Http, AFullPeerShedsItsOldestConnectionWithoutAnAcceptedRequest) {
  settings.connections_per_peer_max = 3;
  settings.io_threads = 1;
  handler.on_choose = [](const RequestHead& head) {
    Handler::Choice choice;
    if (head.path() == "/refused") choice.refusal = Response{403, {}, "no"};
    return choice;
  };
  serve();
  RawClient known = client();
  EXPECT_EQ(known.exchange("GET / HTTP/1.1\r\n\r\n").status, 200);
  RawClient idle = client();
  RawClient refused = client();
  EXPECT_EQ(refused.exchange("GET /refused HTTP/1.1\r\n\r\n").status, 403);
  RawClient turned_away = client();
  EXPECT_EQ(turned_away.receive().status, 503);
  EXPECT_TRUE(idle.closed());
  int status = 0;
  // until the server has counted the end of the idle one
  for (int i = 0; i < 1000 && status != 200; i++) {
    RawClient next = client();
    status = next.exchange("GET / HTTP/1.1\r\n\r\n").status;
  }
  EXPECT_EQ(status, 200);
  EXPECT_EQ(known.exchange("GET / HTTP/1.1\r\n\r\n").status, 200)
      << "a connection with an accepted request stays";
}

TEST_F(Http, AFullPeerShedsConnectionsThatAreNotAuthenticatedYet) {
  settings.connections_per_peer_max = 3;
  settings.io_threads = 1;
  handler.on_choose = [](const RequestHead&) {
    Handler::Choice choice;
    choice.authenticated = false;
    return choice;
  };
  serve();
  RawClient proven = client();
  EXPECT_EQ(proven.exchange("GET / HTTP/1.1\r\n\r\n").status, 200);
  RawClient unproven[] = {client(), client()};
  for (RawClient& each : unproven)
    ASSERT_TRUE(each.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n"));
  int status = 0;
  // Until the server has read both heads, and has counted the end of a connection.
  for (int i = 0; i < 1000 && status != 200; i++) {
    RawClient next = client();
    status = next.exchange("GET / HTTP/1.1\r\n\r\n").status;
  }
  EXPECT_EQ(status, 200);
  EXPECT_EQ(proven.exchange("GET / HTTP/1.1\r\n\r\n").status, 200);
}

TEST_F(Http, UnauthenticatedBodiesHaveASeparateLimit) {
  settings.buffered_bytes_max = 400'000;
  handler.on_choose = [](const RequestHead& head) {
    Handler::Choice choice;
    choice.authenticated = head.path() != "/unproven";
    return choice;
  };
  serve();
  const std::string body(200'000, 'x');
  const auto post = [&](const std::string& path) {
    RawClient one = client();
    return one
        .exchange("POST " + path + " HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) +
                  "\r\n\r\n" + body)
        .status;
  };
  EXPECT_EQ(post("/unproven"), 503);
  EXPECT_EQ(post("/"), 200);
}

// -- answers --------------------------------------------------------------------------------------

TEST_F(Http, HeaderValuesCannotEndTheirLine) {
  handler.on_handle = [](Request, std::unique_ptr<Responder> responder) {
    Response response;
    response.headers.add("X-Name", "a\r\nSet-Cookie: evil\n\x01");
    response.headers.add("Content-Length", "7");
    response.headers.add("Transfer-Encoding", "chunked");
    response.body = "body";
    responder->reply(std::move(response));
  };
  serve();
  RawClient client = this->client();
  const Answer answer = client.exchange("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(answer.headers.get("X-Name"), "a  Set-Cookie: evil");
  EXPECT_FALSE(answer.headers.has("Set-Cookie"));
  EXPECT_FALSE(answer.headers.has("Transfer-Encoding"));
  EXPECT_EQ(answer.body, "body");
}

TEST_F(Http, SendsAnswersOfAllSizes) {
  handler.on_handle = [](Request request, std::unique_ptr<Responder> responder) {
    responder->reply({200, {}, body_from(0, size_t(parse_int(request.path().substr(1)).value()))});
  };
  serve();
  RawClient client = this->client();
  for (const size_t size : {0u, 1u, 16384u, 16385u, 1'000'000u, 20'000'000u}) {
    const Answer answer = client.exchange("GET /" + std::to_string(size) + " HTTP/1.1\r\n\r\n");
    EXPECT_EQ(answer.body.size(), size);
    EXPECT_TRUE(is_body_from(0, answer.body));
  }
}

TEST_F(Http, ServesHttp10Clients) {
  serve();
  RawClient closing = client();
  EXPECT_EQ(closing.exchange("GET /a HTTP/1.0\r\n\r\n").body, "/a|");
  EXPECT_TRUE(closing.closed());
  RawClient staying = client();
  for (int i = 0; i < 2; i++) {
    const Answer answer = staying.exchange("GET /b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(answer.headers.get("Connection"), "keep-alive");
    EXPECT_EQ(answer.body, "/b|");
  }
}

TEST_F(Http, SomeStatusesHaveNoBody) {
  handler.on_handle = [](Request request, std::unique_ptr<Responder> responder) {
    responder->reply({int(parse_int(request.path().substr(1)).value()), {}, "unsendable"});
  };
  serve();
  RawClient client = this->client();
  for (const int status : {204, 304}) {
    const Answer answer = client.exchange("GET /" + std::to_string(status) + " HTTP/1.1\r\n\r\n");
    EXPECT_EQ(answer.status, status);
    EXPECT_FALSE(answer.headers.has("Content-Length"));
  }
  EXPECT_EQ(client.exchange("GET /200 HTTP/1.1\r\n\r\n").body, "unsendable");
}

TEST_F(Http, AHandlerThatThrowsAnswers500) {
  handler.on_handle = [](Request, std::unique_ptr<Responder>) {
    throw std::runtime_error("a fault of ours");
  };
  handler.on_stream = [](Stream&) { throw std::runtime_error("a fault of ours"); };
  serve();
  RawClient client = this->client();
  EXPECT_EQ(client.exchange("GET / HTTP/1.1\r\n\r\n").status, 500);
  EXPECT_EQ(client.exchange("GET /stream HTTP/1.1\r\n\r\n").status, 500);
}

// -- the end --------------------------------------------------------------------------------------

TEST_F(Http, AnInvalidListenAddressIsAnError) {
  serve();
  HttpSettings same = settings;
  same.listen = "127.0.0.1:" + std::to_string(server->port());
  EXPECT_EQ(serve_http(same, handler).error().kind, Kind::conflict);
  for (const std::string listen :
       {"127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "nowhere.example:1", ":0:0"}) {
    same.listen = listen;
    EXPECT_EQ(serve_http(same, handler).error().kind, Kind::invalid) << listen;
  }
  same.listen = "127.0.0.1:0";
  same.certificate_file = "/no/such/certificate";
  EXPECT_EQ(serve_http(same, handler).error().kind, Kind::invalid);
}

// Reads the kernel's options of the accepted end of a connection.
std::map<std::string, int> options_of_accepted(const RawClient& client) {
  sockaddr_in ours = {}, peer = {};
  socklen_t length = sizeof ours;
  EXPECT_EQ(::getsockname(client.descriptor(), reinterpret_cast<sockaddr*>(&ours), &length), 0);
  std::map<std::string, int> found;
  for (int descriptor = 0; descriptor < 4096; descriptor++) {
    length = sizeof peer;
    if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0 ||
        peer.sin_family != AF_INET || peer.sin_port != ours.sin_port)
      continue;
    const auto get = [&](const std::string& name, int level, int option) {
      length = sizeof found[name];
      EXPECT_EQ(::getsockopt(descriptor, level, option, &found[name], &length), 0);
    };
    get("asks", SOL_SOCKET, SO_KEEPALIVE);
    get("idle", IPPROTO_TCP, TCP_KEEPIDLE);
    get("interval", IPPROTO_TCP, TCP_KEEPINTVL);
    get("dead after", IPPROTO_TCP, TCP_USER_TIMEOUT);
  }
  return found;
}

TEST_F(Http, SetsDeadPeerLimitsOnEveryConnection) {
  const std::map<std::string, int> expected = {
      {"asks", 1}, {"idle", 30}, {"interval", 10}, {"dead after", 90'000}};
  serve();
  RawClient client = this->client();
  ASSERT_EQ(client.exchange("GET / HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_EQ(options_of_accepted(client), expected);
  // The same for a listener that the test made.
  os::File listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in any = {
      .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  ASSERT_EQ(::bind(listener.descriptor(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(::listen(listener.descriptor(), 8), 0);
  const auto given = serve_http(settings, handler, std::move(listener));
  ASSERT_TRUE(given) << given.error().message;
  RawClient other((*given)->port());
  ASSERT_EQ(other.exchange("GET / HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_EQ(options_of_accepted(other), expected);
}

TEST_F(Http, ServesManyClientsAtOnce) {
  with_tls();
  handler.on_stream = [](Stream& stream) {
    const auto taken = read_body(stream);
    stream.reply({200, {}, taken ? std::to_string(*taken) : "broken"}).value();
  };
  serve();
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  constexpr int kClients = 16, kRounds = 30;
  for (int t = 0; t < kClients; t++)
    threads.emplace_back([&, t] {
      for (int round = 0; round < kRounds; round++) {
        RawClient client = this->client();
        if ((t + round) % 4 == 0 && !client.start_tls(authority)) continue;
        const std::string body = body_from(0, size_t(round * 1000 + t));
        const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
        const bool one = client.exchange("PUT /stream HTTP/1.1\r\n" + length + body).body ==
                         std::to_string(body.size());
        const bool two =
            client.exchange("POST /x HTTP/1.1\r\n" + length + body).body == "/x|" + body;
        if (one && two) right++;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, kClients * kRounds);
}

}  // namespace
}  // namespace trainyard::net
