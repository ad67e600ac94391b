#include "allocator/cel/regex_internal.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "allocator/base/compiler.h"

#include "allocator/base/banned.h"

/* Go compares names without case, blanks, dashes and underscores, and looks categories up first, then scripts, then the
 * long names of categories. Names of scripts are compared against the table of scripts with their underscores, so that
 * only those of one word are ever found. */

static const char categories[] =
    " C Cc Cf Cn Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm "
    "So Z Zl Zp Zs ";

static const struct {
    const char *name, *category;
} aliases[] = {
    {"Casedletter", "L&"},
    {"Closepunctuation", "Pe"},
    {"Combiningmark", "M"},
    {"Connectorpunctuation", "Pc"},
    {"Control", "Cc"},
    {"Currencysymbol", "Sc"},
    {"Dashpunctuation", "Pd"},
    {"Decimalnumber", "Nd"},
    {"Enclosingmark", "Me"},
    {"Finalpunctuation", "Pf"},
    {"Format", "Cf"},
    {"Initialpunctuation", "Pi"},
    {"Letter", "L"},
    {"Letternumber", "Nl"},
    {"Lineseparator", "Zl"},
    {"Lowercaseletter", "Ll"},
    {"Mark", "M"},
    {"Mathsymbol", "Sm"},
    {"Modifierletter", "Lm"},
    {"Modifiersymbol", "Sk"},
    {"Nonspacingmark", "Mn"},
    {"Number", "N"},
    {"Openpunctuation", "Ps"},
    {"Other", "C"},
    {"Otherletter", "Lo"},
    {"Othernumber", "No"},
    {"Otherpunctuation", "Po"},
    {"Othersymbol", "So"},
    {"Paragraphseparator", "Zp"},
    {"Privateuse", "Co"},
    {"Punctuation", "P"},
    {"Separator", "Z"},
    {"Spaceseparator", "Zs"},
    {"Spacingmark", "Mc"},
    {"Surrogate", "Cs"},
    {"Symbol", "S"},
    {"Titlecaseletter", "Lt"},
    {"Unassigned", "Cn"},
    {"Uppercaseletter", "Lu"},
    {"Cntrl", "Cc"},
    {"Digit", "Nd"},
    {"Punct", "P"},
    {"Lc", "L&"},
};

static const char scripts[] =
    " Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid "
    "Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Dogra Duployan "
    "Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han Hangul Hanunoo Hatran "
    "Hebrew "
    "Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki Khudawadi Lao Latin Lepcha Limbu "
    "Lisu "
    "Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen Medefaidrin Miao Modi Mongolian Mro Multani "
    "Myanmar "
    "Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage Osmanya Palmyrene Phoenician Rejang Runic Samaritan "
    "Saurashtra "
    "Sharada Shavian Siddham Sinhala Sogdian Soyombo Sundanese Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut "
    "Telugu "
    "Thaana Thai Tibetan Tifinagh Tirhuta Toto Ugaritic Vai Vithkuqi Wancho Yezidi Yi ";

#define NAME_MAX_LENGTH 32

/* First letter large, the others small, separators gone; false when longer than any name. */
static bool canonical(struct str name, char out[NAME_MAX_LENGTH])
{
    size_t n = 0;

    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (c == '_' || c == '-' || c == ' ')
            continue;
        if (c >= (n == 0 ? 'a' : 'A') && c <= (n == 0 ? 'z' : 'Z'))
            c = (char)(c ^ 0x20);
        if (n == NAME_MAX_LENGTH - 1 || c == '\0')
            return false;
        out[n++] = c;
    }
    out[n] = '\0';
    return n > 0;
}

static bool is_listed(const char *name, const char *list)
{
    size_t n = strlen(name);

    for (const char *p = strstr(list, name); p; p = strstr(p + 1, name))
        if (p[-1] == ' ' && p[n] == ' ')
            return true;
    return false;
}

/* \p{Lu}, \p{Ll} and \p{Lt} with folding: letters that have a case. */
static bool is_cased(const char *category)
{
    return strcmp(category, "Lu") == 0 || strcmp(category, "Ll") == 0 || strcmp(category, "Lt") == 0;
}

static void add(struct buf *out, bool negated, const char *kind, const char *name)
{
    buf_addf(out, "\\%c{%s%s}", negated ? 'P' : 'p', kind, name);
}

bool regex_add_property(struct str name, bool negated, bool fold, struct buf *out)
{
    char text[NAME_MAX_LENGTH];

    if (!canonical(name, text))
        return false;
    if (strcmp(text, "Any") == 0) {
        add(out, negated, "", "Any");
        return true;
    }
    if (strcmp(text, "Assigned") == 0) {
        add(out, !negated, "", "Cn");
        return true;
    }
    if (strcmp(text, "Ascii") == 0) {
        if (fold) /* the long s and the Kelvin sign fold into ASCII */
            buf_adds(out, negated ? "\\x{80}-\\x{17E}\\x{180}-\\x{2129}\\x{212B}-\\x{10FFFF}" : "\\x{0}-\\x{7F}");
        else
            buf_adds(out, negated ? "\\x{80}-\\x{10FFFF}" : "\\x{0}-\\x{7F}");
        return true;
    }
    if (is_listed(text, categories)) {
        add(out, negated, "", fold && is_cased(text) ? "L&" : text);
        return true;
    }
    if (is_listed(text, scripts)) {
#if PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40
        add(out, negated, "sc:", text); /* without it PCRE2 means the extended scripts */
#else
        add(out, negated, "", text);
#endif
        return true;
    }
    for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
        if (strcmp(text, aliases[i].name) != 0)
            continue;
        add(out, negated, "", fold && is_cased(aliases[i].category) ? "L&" : aliases[i].category);
        return true;
    }
    return false;
}
