"""Functions that belong together: what an edit puts before one of them, it puts before all."""

import attrs


@attrs.frozen
class Library:
    """Some functions, and what may be written before their names for the same function: old and new.

    `words` say what they have in common. `is_whole` says that authors write it before all of them, and not before some.
    """

    words: str
    names: frozenset[str]
    before: frozenset[tuple[str, str]]
    is_whole: bool = True


_C = """
    abort atexit exit getenv system malloc calloc realloc free atof atoi atol atoll strtod strtof strtol strtoll strtoul
    strtoull rand srand qsort bsearch memchr memcmp memcpy memmove memset strcat strchr strcmp strcoll strcpy strcspn
    strerror strlen strncat strncmp strncpy strpbrk strrchr strspn strstr strtok isalnum isalpha iscntrl isdigit isgraph
    islower isprint ispunct isspace isupper isxdigit tolower toupper clearerr fclose feof ferror fflush fgetc fgetpos
    fgets fopen fprintf fputc fputs fread freopen fscanf fseek fsetpos ftell fwrite getc getchar perror printf putc
    putchar puts remove rename rewind scanf setbuf setvbuf snprintf sprintf sscanf tmpfile ungetc vfprintf vprintf
    vsnprintf vsprintf clock difftime mktime strftime
"""
"""Without macros, and without what C++ has for more types, such as `abs`."""

_LOGGING = "error warn info debug trace"

_PHP_UNIT = """
    assertArrayHasKey assertArrayNotHasKey assertClassHasAttribute assertClassHasStaticAttribute
    assertClassNotHasAttribute assertContains assertContainsEquals assertContainsOnly assertContainsOnlyInstancesOf
    assertCount assertDirectoryDoesNotExist assertDirectoryExists assertDirectoryIsReadable assertDirectoryIsWritable
    assertDirectoryNotExists assertDoesNotMatchRegularExpression assertEmpty assertEquals assertEqualsCanonicalizing
    assertEqualsIgnoringCase assertEqualsWithDelta assertFalse assertFileDoesNotExist assertFileEquals assertFileExists
    assertFileIsReadable assertFileIsWritable assertFileNotEquals assertFileNotExists assertFinite assertGreaterThan
    assertGreaterThanOrEqual assertInfinite assertInstanceOf assertInternalType assertIsArray assertIsBool
    assertIsCallable assertIsFloat assertIsInt assertIsIterable assertIsNotArray assertIsNotString assertIsNumeric
    assertIsObject assertIsResource assertIsScalar assertIsString assertJson assertJsonFileEqualsJsonFile
    assertJsonStringEqualsJsonFile assertJsonStringEqualsJsonString assertLessThan assertLessThanOrEqual
    assertMatchesRegularExpression assertNan assertNotContains assertNotContainsEquals assertNotCount assertNotEmpty
    assertNotEquals assertNotFalse assertNotInstanceOf assertNotInternalType assertNotNull assertNotRegExp assertNotSame
    assertNotSameSize assertNotTrue assertNull assertObjectHasAttribute assertObjectHasProperty
    assertObjectNotHasAttribute assertRegExp assertSame assertSameSize assertStringContainsString
    assertStringContainsStringIgnoringCase assertStringEndsNotWith assertStringEndsWith assertStringEqualsFile
    assertStringMatchesFormat assertStringMatchesFormatFile assertStringNotContainsString assertStringStartsNotWith
    assertStringStartsWith assertThat assertTrue assertXmlFileEqualsXmlFile assertXmlStringEqualsXmlString fail
    markTestIncomplete markTestSkipped
"""
"""Static methods of its TestCase, so that `$this` before them is the class."""

_OF_CLASS = ("$this->", "self::", "static::")

_LIBRARIES = {
    "cpp": Library(
        "that it is a function of C's library", frozenset(_C.split()), frozenset({("", "std::")}), is_whole=False
    ),
    "rust": Library(
        "that it is a macro that logs",
        frozenset(_LOGGING.split()),
        frozenset({("", "log::"), ("", "tracing::")}),
        is_whole=False,
    ),
    "php": Library(
        "that it is a static method of PHPUnit",
        frozenset(_PHP_UNIT.split()),
        frozenset((old, new) for old in _OF_CLASS for new in _OF_CLASS if old != new),
    ),
}


def is_whole(language: str) -> bool:
    """Return whether authors write something before all functions of a language's library."""
    return language in _LIBRARIES and _LIBRARIES[language].is_whole


def library_of(language: str, name: str, before: str, after: str) -> Library | None:
    """Return the library of a function whose name has another text before it after an edit; None if it is of none."""
    known = _LIBRARIES.get(language)
    return known if known is not None and name in known.names and (before, after) in known.before else None
