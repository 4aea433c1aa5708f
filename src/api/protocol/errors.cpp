#include "protocol/errors.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "protocol/route.hpp"

namespace trainyard::api {
namespace {

// The protocols have different names for the errors that every service has.
enum class Dialect { json, query, ec2, s3 };

Dialect dialect_of(const shapes::Service& service) {
  if (service.name == "s3") return Dialect::s3;
  if (service.ec2_query) return Dialect::ec2;
  return service.query ? Dialect::query : Dialect::json;
}

struct Names {
  std::string_view json, query, s3;
  std::string_view ec2 = "";  // "": that of the query protocol
};

std::string named(const shapes::Service& service, const Names& names) {
  switch (dialect_of(service)) {
    case Dialect::json:
      return std::string(names.json);
    case Dialect::query:
      return std::string(names.query);
    case Dialect::ec2:
      return std::string(names.ec2.empty() ? names.query : names.ec2);
    case Dialect::s3:
      return std::string(names.s3);
  }
  return "";
}

// The names and the status of a kind of error.
struct Row {
  Kind kind;
  int status;
  std::string_view sagemaker, logs, query, s3, ec2;
};

constexpr Row kRows[] = {
    {Kind::invalid, 400, "ValidationException", "InvalidParameterException",
     "InvalidParameterValue", "InvalidArgument", "InvalidParameterValue"},
    {Kind::denied, 403, "AccessDeniedException", "AccessDeniedException", "AccessDenied",
     "AccessDenied", "UnauthorizedOperation"},
    {Kind::not_found, 404, "ValidationException", "ResourceNotFoundException", "ResourceNotFound",
     "NoSuchKey", "InvalidID"},
    {Kind::conflict, 409, "ConflictException", "ResourceAlreadyExistsException",
     "ConflictException", "OperationAborted", "IncorrectState"},
    {Kind::exhausted, 503, "ThrottlingException", "ServiceUnavailableException", "Throttling",
     "SlowDown", "RequestLimitExceeded"},
    {Kind::unavailable, 503, "ServiceUnavailable", "ServiceUnavailableException",
     "ServiceUnavailable", "ServiceUnavailable", "Unavailable"},
    {Kind::cancelled, 503, "ServiceUnavailable", "ServiceUnavailableException",
     "ServiceUnavailable", "RequestTimeout", "Unavailable"},
    {Kind::corrupt, 500, "InternalFailure", "InternalFailure", "InternalFailure", "InternalError",
     "InternalError"},
    {Kind::internal, 500, "InternalFailure", "InternalFailure", "InternalFailure", "InternalError",
     "InternalError"},
};

// SNS has names of its own for all kinds.
Failure sns_failure_of(const Error& error) {
  switch (error.kind) {
    case Kind::invalid:
    case Kind::conflict:
      return {400, "InvalidParameter", error.message};
    case Kind::denied:
      return {403, "AuthorizationError", error.message};
    case Kind::not_found:
      return {404, "NotFound", error.message};
    case Kind::exhausted:
      return {429, "Throttled", error.message};
    case Kind::unavailable:
    case Kind::cancelled:
      return {503, "ServiceUnavailable", error.message};
    case Kind::corrupt:
    case Kind::internal:
      break;
  }
  return {500, "InternalError", error.message};
}

}  // namespace

Failure failure_of(const shapes::Service& service, const Error& error) {
  for (const auto& row : kRows) {
    if (row.kind != error.kind) continue;
    const Dialect dialect = dialect_of(service);
    std::string_view code = row.sagemaker;
    if (dialect == Dialect::s3)
      code = row.s3;
    else if (service.name == "sns")
      return sns_failure_of(error);
    else if (dialect == Dialect::query)
      code = row.query;
    else if (dialect == Dialect::ec2)
      code = row.ec2;
    else if (service.name == "logs")
      code = row.logs;
    else if (service.name == "fsx")
      code = row.status < 500 && row.kind != Kind::denied ? "BadRequest"
             : row.status == 500                          ? "InternalServerError"
                                                          : row.sagemaker;
    else if (service.name == "batch")  // the only two errors of Batch
      code = row.status < 500 ? "ClientException" : "ServerException";
    // The JSON services return 400 for all client errors. S3 and the query services do not.
    const int status = dialect == Dialect::json && row.status < 500 ? 400 : row.status;
    return {status, std::string(code), error.message};
  }
  return {500, "InternalFailure", error.message};
}

Failure unknown_operation(const shapes::Service* service, std::string_view name) {
  const bool s3 = service && dialect_of(*service) == Dialect::s3;
  const bool absent =
      service && std::ranges::find(service->absent, name, &shapes::AbsentOperation::name) !=
                     service->absent.end();
  const bool ec2 = service && dialect_of(*service) == Dialect::ec2;
  constexpr std::string_view kNotOffered =
      " is not offered by this version; see docs/compatibility.md";
  if (absent)
    return {s3 ? 501 : 400,
            s3    ? "NotImplemented"
            : ec2 ? "InvalidAction"
                  : "UnknownOperationException",
            std::string(name) + std::string(kNotOffered)};
  if (s3)
    return {501, "NotImplemented",
            "A header or query you provided implies functionality that is not implemented: " +
                shorten(name, 200)};
  if (ec2)
    return {400, "InvalidAction",
            "The action " + shorten(name, 200) + " is not valid for this web service."};
  return {
      400, "UnknownOperationException",
      (name.empty() ? "The requested operation" : shorten(name, 200)) + std::string(kNotOffered)};
}

Failure not_implemented(std::string message) { return {501, "NotImplemented", std::move(message)}; }

Failure unreadable_body(const shapes::Service& service, std::string message) {
  return {400,
          named(service, {"SerializationException", "MalformedInput", "MalformedXML",
                          "InvalidParameterValue"}),
          std::move(message)};
}

Failure validation(const shapes::Service& service, std::string message) {
  if (service.name == "logs") return {400, "InvalidParameterException", std::move(message)};
  if (service.name == "batch") return client_exception(std::move(message));
  if (service.name == "fsx") return {400, "BadRequest", std::move(message)};
  if (service.name == "sns")
    return {400, "InvalidParameter", "Invalid parameter: " + std::move(message)};
  return {400,
          named(service, {"ValidationException", "ValidationError", "InvalidRequest",
                          "InvalidParameterValue"}),
          std::move(message)};
}

Failure too_large(const shapes::Service& service, size_t bytes_max) {
  return {
      413,
      named(service, {"RequestEntityTooLargeException", "RequestEntityTooLarge", "EntityTooLarge"}),
      "the body is larger than the " + std::to_string(bytes_max) +
          " bytes that this operation takes"};
}

Failure missing_authentication(const shapes::Service& service) {
  if (dialect_of(service) == Dialect::s3) return {403, "AccessDenied", "Access Denied"};
  return {403,
          named(service, {"MissingAuthenticationTokenException", "MissingAuthenticationToken", ""}),
          "Missing Authentication Token"};
}

namespace {
// EC2 does not tell an unknown key from a wrong signature.
Failure ec2_authentication() {
  return {401, "AuthFailure", "AWS was not able to validate the provided access credentials"};
}
}  // namespace

Failure unknown_key(const shapes::Service& service, std::string_view access_key_id) {
  if (dialect_of(service) == Dialect::ec2) return ec2_authentication();
  if (dialect_of(service) == Dialect::s3)
    return {403, "InvalidAccessKeyId",
            "The AWS Access Key Id you provided does not exist in our records.",
            shorten(access_key_id, 128)};
  return {403, named(service, {"UnrecognizedClientException", "InvalidClientTokenId", ""}),
          "The security token included in the request is invalid."};
}

Failure malformed_authentication(const shapes::Service& service, std::string message) {
  return {400,
          named(service, {"IncompleteSignatureException", "IncompleteSignature",
                          "AuthorizationHeaderMalformed"}),
          std::move(message)};
}

Failure wrong_signature(const shapes::Service& service) {
  if (dialect_of(service) == Dialect::ec2) return ec2_authentication();
  return {403,
          named(service,
                {"InvalidSignatureException", "SignatureDoesNotMatch", "SignatureDoesNotMatch"}),
          dialect_of(service) == Dialect::s3
              ? "The request signature we calculated does not match the signature you provided. "
                "Check your key and signing method."
              : "The request signature we calculated does not match the signature you provided. "
                "Check your AWS Secret Access Key and signing method. Consult the service "
                "documentation for details."};
}

Failure unsigned_headers(const shapes::Service& service, const std::vector<std::string>& names) {
  std::string list = join(names, ", ");
  if (dialect_of(service) == Dialect::s3) {
    Failure failure{403, "AccessDenied",
                    "There were headers present in the request which were not signed"};
    failure.headers_not_signed = std::move(list);
    return failure;
  }
  return malformed_authentication(
      service, "'" + list + "' must be a 'SignedHeader' in the AWS Authorization.");
}

Failure request_skewed(const shapes::Service& service, std::string message) {
  if (dialect_of(service) == Dialect::s3)
    return {403, "RequestTimeTooSkewed",
            "The difference between the request time and the current time is too large."};
  return {403, named(service, {"InvalidSignatureException", "SignatureDoesNotMatch", ""}),
          std::move(message)};
}

Failure request_expired(const shapes::Service& service) {
  return {403, named(service, {"InvalidSignatureException", "RequestExpired", "AccessDenied"}),
          "Request has expired"};
}

Failure token_expired(const shapes::Service& service) {
  if (dialect_of(service) == Dialect::s3)
    return {400, "ExpiredToken", "The provided token has expired."};
  return {dialect_of(service) == Dialect::json ? 400 : 403,
          named(service, {"ExpiredTokenException", "ExpiredToken", ""}),
          "The security token included in the request is expired"};
}

Failure token_invalid(const shapes::Service& service) {
  if (dialect_of(service) == Dialect::s3)
    return {400, "InvalidToken", "The provided token is malformed or otherwise invalid."};
  return unknown_key(service, "");
}

Failure throttled(const shapes::Service& service) {
  if (dialect_of(service) == Dialect::s3)
    return {503, "SlowDown", "Please reduce your request rate."};
  if (dialect_of(service) == Dialect::ec2)
    return {503, "RequestLimitExceeded", "Request limit exceeded."};
  if (uses_rest_json(service)) return {429, "TooManyRequestsException", "Too Many Requests"};
  return {400, named(service, {"ThrottlingException", "Throttling", "SlowDown"}), "Rate exceeded"};
}

Failure body_changed(const shapes::Service& service) {
  if (dialect_of(service) == Dialect::s3)
    return {400, "XAmzContentSHA256Mismatch",
            "The provided 'x-amz-content-sha256' header does not match what was computed."};
  return wrong_signature(service);
}

Failure access_denied(const shapes::Service& service, std::string message) {
  if (dialect_of(service) == Dialect::ec2)
    message.insert(0, "You are not authorized to perform this operation. ");
  if (service.name == "sns") return {403, "AuthorizationError", std::move(message)};
  return {dialect_of(service) == Dialect::json ? 400 : 403,
          named(service,
                {"AccessDeniedException", "AccessDenied", "AccessDenied", "UnauthorizedOperation"}),
          std::move(message)};
}

Failure validation_exception(std::string message) {
  return {400, "ValidationException", std::move(message)};
}
Failure resource_in_use(std::string message) { return {400, "ResourceInUse", std::move(message)}; }
Failure resource_limit_exceeded(std::string message) {
  return {400, "ResourceLimitExceeded", std::move(message)};
}

Failure resource_not_found(std::string message) {
  return {400, "ResourceNotFoundException", std::move(message)};
}
Failure resource_already_exists(std::string message) {
  return {400, "ResourceAlreadyExistsException", std::move(message)};
}
Failure invalid_parameter(std::string message) {
  return {400, "InvalidParameterException", std::move(message)};
}

Failure invalid_parameter_value(std::string message) {
  return {400, "InvalidParameterValue", std::move(message)};
}
Failure invalid_parameter_combination(std::string message) {
  return {400, "InvalidParameterCombination", std::move(message)};
}
Failure missing_parameter(std::string message) {
  return {400, "MissingParameter", std::move(message)};
}

Failure client_exception(std::string message) {
  return {400, "ClientException", std::move(message)};
}

Failure sns_failure(int status, std::string code, std::string message) {
  return {status, std::move(code), std::move(message)};
}
Failure sns_invalid(const std::string& message) {
  return {400, "InvalidParameter", "Invalid parameter: " + message};
}
Failure events_failure(std::string code, std::string message) {
  return {400, std::move(code), std::move(message)};
}

Failure no_such_entity(std::string message) { return {404, "NoSuchEntity", std::move(message)}; }
Failure invalid_input(std::string message) { return {400, "InvalidInput", std::move(message)}; }

Failure no_such_bucket(std::string_view bucket) {
  return {404, "NoSuchBucket", "The specified bucket does not exist", std::string(bucket)};
}
Failure no_such_key(std::string_view key) {
  return {404, "NoSuchKey", "The specified key does not exist.", std::string(key)};
}
Failure no_such_upload(std::string_view upload_id) {
  return {404, "NoSuchUpload",
          "The specified upload does not exist. The upload ID may be invalid, or the upload may "
          "have been aborted or completed.",
          std::string(upload_id)};
}
Failure bucket_not_empty(std::string_view bucket) {
  return {409, "BucketNotEmpty", "The bucket you tried to delete is not empty",
          std::string(bucket)};
}
Failure bucket_already_owned_by_you(std::string_view bucket) {
  return {409, "BucketAlreadyOwnedByYou",
          "Your previous request to create the named bucket succeeded and you already own it.",
          std::string(bucket)};
}
Failure invalid_bucket_name(std::string_view bucket) {
  return {400, "InvalidBucketName", "The specified bucket is not valid.", std::string(bucket)};
}
Failure invalid_argument(std::string message) {
  return {400, "InvalidArgument", std::move(message)};
}
Failure invalid_range() { return {416, "InvalidRange", "The requested range is not satisfiable"}; }
Failure invalid_part(std::string message) { return {400, "InvalidPart", std::move(message)}; }
Failure invalid_part_order() {
  return {400, "InvalidPartOrder",
          "The list of parts was not in ascending order. The parts list must be specified in order "
          "by part number."};
}
Failure entity_too_small() {
  return {400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size"};
}
Failure bad_digest(std::string message) { return {400, "BadDigest", std::move(message)}; }
Failure incomplete_body() {
  return {400, "IncompleteBody",
          "You did not provide the number of bytes specified by the Content-Length HTTP header"};
}
Failure precondition_failed(std::string_view condition) {
  return {412, "PreconditionFailed",
          "At least one of the pre-conditions you specified did not hold", std::string(condition)};
}
Failure not_modified() { return {304, "NotModified", "Not Modified", "", true}; }
Failure invalid_request(std::string message) { return {400, "InvalidRequest", std::move(message)}; }
Failure s3_failure(int status, std::string code, std::string message) {
  return {status, std::move(code), std::move(message)};
}

}  // namespace trainyard::api
