#include "net/http_decoder.hpp"

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstring>
#include <utility>

#include "base/text.hpp"

namespace trainyard::net {

namespace beast_http = boost::beast::http;
using Parser = beast_http::request_parser<beast_http::buffer_body>;
using boost::system::error_code;

namespace {

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct HttpDecoder::State {
  boost::beast::flat_buffer buffer;
  std::optional<Parser> parser;
};

HttpDecoder::HttpDecoder(size_t head_bytes_max)
    : head_bytes_max_(head_bytes_max), state_(std::make_unique<State>()) {}

HttpDecoder::~HttpDecoder() = default;

std::span<char> HttpDecoder::free_space(size_t bytes) {
  const auto space = state_->buffer.prepare(bytes);
  return {static_cast<char*>(space.data()), space.size()};
}

void HttpDecoder::filled(size_t bytes) { state_->buffer.commit(bytes); }

size_t HttpDecoder::waiting() const { return state_->buffer.size(); }

void HttpDecoder::drop_waiting() { state_->buffer.clear(); }

std::string HttpDecoder::take_waiting() {
  const auto bytes = state_->buffer.data();
  std::string taken(static_cast<const char*>(bytes.data()), bytes.size());
  state_->buffer.clear();
  return taken;
}

void HttpDecoder::shrink_to(size_t bytes) {
  if (state_->buffer.capacity() > bytes) state_->buffer.shrink_to_fit();
}

HttpDecoder::Step HttpDecoder::fail(int status, std::string explanation) {
  fault_ = {status, std::move(explanation)};
  return Step::fault;
}

void HttpDecoder::begin() {
  state_->parser.emplace();
  state_->parser->header_limit(uint32_t(head_bytes_max_));
  state_->parser->body_limit(boost::none);
  body_ = Body::none;
  remaining_ = 0;
  chunks_ended_ = false;
  expects_continue_ = false;
  is_http_1_0_ = false;
  is_head_method_ = false;
}

HttpDecoder::Step HttpDecoder::head() {
  auto& [buffer, parser] = *state_;
  while (buffer.size() > 0) {
    error_code error;
    buffer.consume(parser->put(buffer.data(), error));
    if (parser->is_header_done() && !error) return Step::done;
    if (error == beast_http::error::header_limit ||
        (error == beast_http::error::need_more && buffer.size() > head_bytes_max_))
      return fail(431, "The request's head is larger than " + human_bytes(head_bytes_max_) + ".\n");
    if (error == beast_http::error::need_more) return Step::more;
    if (error) return fail(400, "Not an HTTP/1.1 request: " + error.message() + ".\n");
  }
  return Step::more;
}

HttpDecoder::Step HttpDecoder::take_head(RequestHead& head) {
  const Parser& parser = *state_->parser;
  const auto& message = parser.get();
  is_http_1_0_ = message.version() == 10;
  is_head_method_ = message.method() == beast_http::verb::head;
  head.method = view(message.method_string());
  head.target = view(message.target());
  head.headers = Headers();
  head.headers.reserve(16);
  bool coded = false;
  std::string_view expectation;
  for (const auto& field : message) {
    if (field.name() == beast_http::field::transfer_encoding) coded = true;
    if (field.name() == beast_http::field::expect) expectation = view(field.value());
    head.headers.add(std::string(view(field.name_string())), std::string(view(field.value())));
  }
  head.content_length.reset();
  if (parser.chunked()) {
    body_ = Body::chunked;
  } else if (coded) {
    return fail(501, "The only supported transfer coding is chunked.\n");
  } else if (const auto length = parser.content_length()) {
    head.content_length = *length;
    remaining_ = *length;
    body_ = Body::sized;
  }
  if (!expectation.empty() && !equals_ignoring_case(expectation, "100-continue"))
    return fail(417, "The only supported expectation is 100-continue.\n");
  expects_continue_ = !expectation.empty() && !is_http_1_0_;
  return Step::done;
}

bool HttpDecoder::keep_alive() const { return state_->parser && state_->parser->keep_alive(); }

HttpDecoder::Step HttpDecoder::take_body(std::span<char> out, size_t& got) {
  got = 0;
  if (!body_left()) return Step::done;
  if (body_ == Body::chunked) return take_chunks(out, got);
  auto& buffer = state_->buffer;
  if (buffer.size() == 0) return Step::more;
  got = size_t(std::min<uint64_t>({out.size(), buffer.size(), remaining_}));
  std::memcpy(out.data(), buffer.data().data(), got);
  buffer.consume(got);
  remaining_ -= got;
  return Step::done;
}

HttpDecoder::Step HttpDecoder::take_chunks(std::span<char> out, size_t& got) {
  auto& [buffer, parser] = *state_;
  auto& body = parser->get().body();
  body.data = out.data();
  body.size = out.size();
  // The parser consumes one element at a time: the header of a chunk, a part of its body, its end.
  while (!parser->is_done() && body.size == out.size()) {
    if (buffer.size() == 0) return Step::more;
    error_code error;
    buffer.consume(parser->put(buffer.data(), error));
    if (body.size < out.size()) break;
    if (error == beast_http::error::need_more && buffer.size() <= head_bytes_max_)
      return Step::more;
    if (error) return fail(400, "The request's chunks are malformed: " + error.message() + ".\n");
  }
  got = out.size() - body.size;
  chunks_ended_ = parser->is_done();
  return Step::done;
}

}  // namespace trainyard::net
