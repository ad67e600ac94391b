# Write a text file as a C string: cmake -DNAME=api_schemas -DINPUT=schemas.json -DOUTPUT=schemas.h -P embed.cmake
file(READ ${INPUT} text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REGEX REPLACE "\n" "\\\\n\"\n    \"" text "${text}")
file(WRITE ${OUTPUT} "/* Made at build time. */\nstatic const char ${NAME}[] =\n    \"${text}\";\n")
