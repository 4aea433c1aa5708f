// Defines Failure and Outcome, and makes failures with AWS's error names, which no other module
// has.
//
// Operations return an Outcome: the output, or an Error by kind, which becomes the service's usual
// name for that kind, or a Failure with the exact name, made by one of the helpers below.
//
// Threads: plain values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

struct Failure {
  int status = 400;
  std::string code;  // "ValidationException"
  std::string message;
  std::string resource = {};            // S3: the bucket, key, upload or condition
  bool head_only = false;               // S3: a response without a body (304)
  std::string headers_not_signed = {};  // S3: names, separated by ", "
  // S3: further elements of the error's document
  std::vector<std::pair<std::string, std::string>> details = {};
  // JSON services: further members of the error, as text: "a":1
  std::string json_members = {};
};

// Makes the failure that the service usually returns for an error of this kind.
Failure failure_of(const shapes::Service& service, const Error& error);

// -- every service; S3, the query services and the JSON services have different names for these
// `name`: the operation in the request. The message tells an operation that this server lacks from
// one that AWS does not have.
Failure unknown_operation(const shapes::Service* service, std::string_view name);
Failure not_implemented(std::string message);  // S3: an unsupported subresource
Failure unreadable_body(const shapes::Service& service,
                        std::string message);  // SerializationException, MalformedXML ..
Failure validation(const shapes::Service& service, std::string message);
Failure too_large(const shapes::Service& service, size_t bytes_max);
Failure missing_authentication(const shapes::Service& service);
Failure unknown_key(const shapes::Service& service, std::string_view access_key_id);
Failure malformed_authentication(const shapes::Service& service, std::string message);
Failure wrong_signature(const shapes::Service& service);
// `names`: of the headers; not empty.
Failure unsigned_headers(const shapes::Service& service, const std::vector<std::string>& names);
Failure request_skewed(const shapes::Service& service, std::string message);
Failure request_expired(const shapes::Service& service);  // a presigned URL
Failure token_expired(const shapes::Service& service);
Failure token_invalid(const shapes::Service& service);
Failure body_changed(const shapes::Service& service);  // differs from x-amz-content-sha256
Failure access_denied(const shapes::Service& service, std::string message);

// The principal has made too many requests. Clients wait and retry.
Failure throttled(const shapes::Service& service);

// -- sagemaker
Failure validation_exception(std::string message);
Failure resource_in_use(std::string message);
Failure resource_limit_exceeded(std::string message);
// -- logs
Failure resource_not_found(std::string message);
Failure resource_already_exists(std::string message);
Failure invalid_parameter(std::string message);  // InvalidParameterException
// -- cloudwatch
Failure invalid_parameter_value(std::string message);
Failure invalid_parameter_combination(std::string message);
Failure missing_parameter(std::string message);
// -- batch
Failure client_exception(std::string message);
// -- sns
Failure sns_failure(int status, std::string code, std::string message);
Failure sns_invalid(const std::string& message);  // InvalidParameter
// -- events
Failure events_failure(std::string code, std::string message);
// -- iam
Failure no_such_entity(std::string message);
Failure invalid_input(std::string message);
// -- s3
Failure no_such_bucket(std::string_view bucket);
Failure no_such_key(std::string_view key);
Failure no_such_upload(std::string_view upload_id);
Failure bucket_not_empty(std::string_view bucket);
Failure bucket_already_owned_by_you(std::string_view bucket);
Failure invalid_bucket_name(std::string_view bucket);
Failure invalid_argument(std::string message);
Failure invalid_range();
Failure invalid_part(std::string message);
Failure invalid_part_order();
Failure entity_too_small();
Failure bad_digest(std::string message);
Failure incomplete_body();
Failure precondition_failed(std::string_view condition);
Failure not_modified();
Failure invalid_request(std::string message);
// Any other S3 error.
Failure s3_failure(int status, std::string code, std::string message);

// The output of an operation, or its failure.
template <class T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Outcome(Failure failure) : state_(std::in_place_index<1>, std::move(failure)) {}
  Outcome(Error error) : state_(std::in_place_index<2>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  // Returns the failure or error, for TRY in functions that return an Outcome. Requires: no value.
  std::variant<Failure, Error> error() && {
    if (state_.index() == 1) return std::get<1>(std::move(state_));
    return std::get<2>(std::move(state_));
  }
  Outcome(std::variant<Failure, Error> why)
      : state_(why.index() == 0 ? State(std::in_place_index<1>, std::get<0>(std::move(why)))
                                : State(std::in_place_index<2>, std::get<1>(std::move(why)))) {}

  // Returns the failure, or converts the error with failure_of(). Requires: no value.
  Failure failure(const shapes::Service& service) const {
    return state_.index() == 1 ? std::get<1>(state_) : failure_of(service, std::get<2>(state_));
  }

 private:
  using State = std::variant<T, Failure, Error>;
  State state_;
};

// The output of a function that returns only success or failure.
struct Done {};

// Convert the error of a result by a function of the service.
template <class T>
Outcome<T> with_failure(Failure (*failure_for)(const Error&), Result<T> result) {
  if (!result) return failure_for(result.error());
  return *std::move(result);
}
inline Outcome<Done> with_failure(Failure (*failure_for)(const Error&),
                                  const Result<void>& result) {
  if (!result) return failure_for(result.error());
  return Done{};
}

}  // namespace trainyard::api
