"""English in the dates of boards of any language: skins and plugins are often not translated. dateparser, given another
language, leaves out unknown words: of `Mar 13, 2023 9:14 PM` Swedish and Arabic kept the 13th of this month, 9:14.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache
from importlib import import_module

import msgspec

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = r"(?:(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_TIME = r"\d{1,2}:\d\d(?::\d\d)?(?:\s*[ap]\.?m\.?)?"
_UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?|wks?|months?|mos?|years?|yrs?)"
_COUNT = r"(?:\d+(?:\.\d+)?|an?|half an?)"
_AGO = rf"{_COUNT}\s*(?:{_UNIT}|(?<=\d)\s?[hdwy])(?:,?(?:\s+and)?\s+{_COUNT}\s*{_UNIT})*\s+ago"
_SHORT = r"\d+\s?(?:[hdwy]|hrs?|yrs?|wks?)"  # not m: minutes or months, depending on the language
_NEAR_DAY = r"(?:today|yesterday|(?:last\s+)?(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?)"
_IN_ENGLISH = re.compile(
    rf"{_WEEKDAY}(?:{_MONTH}\s+{_DAY},?\s+\d{{4}}|{_DAY}[\s-]+(?:of\s+)?{_MONTH},?[\s-]+\d{{4}})"
    rf"(?:[\s,·|-]+(?:at\s+|@\s*)?{_TIME}(?:\s*(?:UTC|GMT))?)?|{_AGO}|{_SHORT}"
    rf"|{_NEAR_DAY}(?:,?\s+at\s+|,?\s+|\s*@\s*){_TIME}|yesterday|last (?:week|month|year)",
    re.IGNORECASE,
)
_HALF = re.compile(r"(?<![\d:.])(\d{1,2})([:.]\d\d)?((?::\d\d)?)\s*([ap])\.?\s?m\b\.?", re.IGNORECASE)


def is_english(text: str) -> bool:
    """Return True if a text is a date in English, on a board of any language: its month, or a time that has passed."""
    return _IN_ENGLISH.fullmatch(text) is not None


def on_24_hours(text: str) -> str:
    """Convert `9:14 PM` to `21:14`: dateparser does not support PM in half of the languages."""
    return _HALF.sub(_hour, text) if "m" in text or "M" in text else text


def _hour(match: re.Match[str]) -> str:
    hour = int(match[1])
    if not 1 <= hour <= 12:
        return match[0] if hour > 23 or match[2] is None else f"{match[1]}{match[2]}{match[3]}"
    hour = hour % 12 + (12 if match[4] in "pP" else 0)
    return f"{hour:02}{match[2] or ':00'}{match[3]}"


_WORD = re.compile(r"[^\W\d_]+")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_OTHERS = ("am", "pm", "year", "month", "week", "day", "hour", "minute", "second", "ago", "in", "skip", "pertain")
_SHORT_FORMS = 4  # letters of a name that is written short


class Names(msgspec.Struct, frozen=True):
    """Words of a language that name one month, or one day of the week, and nothing else; and the names of January and Monday,
    short and in full.
    """

    months: dict[str, int]
    days: frozenset[str]
    january: tuple[str, str]
    monday: tuple[str, str]


def in_january(text: str, language: str | None) -> tuple[str, int] | None:
    """Return the text with January in place of its month and Monday in place of its day of the week, and the month. None where
    it names no month, or more than one, or has these names already.
    """
    names = _names(language) if language else None
    if names is None:
        return None
    found = [names.months[word] for word in _words_of(text) if word in names.months]
    if len(found) != 1:
        return None

    def replaced(match: re.Match[str]) -> str:
        word = match[0].lower()
        is_long = len(word) > _SHORT_FORMS
        return names.january[is_long] if word in names.months else names.monday[is_long] if word in names.days else match[0]

    changed = _WORD.sub(replaced, text)
    return None if changed == text else (changed, found[0])


def _words_of(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


@lru_cache(maxsize=64)
def _names(language: str) -> Names | None:
    from dateparser.data.languages_info import language_order

    if language not in language_order:
        return None
    table = import_module(f"dateparser.data.date_translation_data.{language}").info

    def single(key: str) -> list[str]:
        return [name for name in table.get(key) or () if isinstance(name, str) and _WORD.fullmatch(name)]

    taken: dict[str, set[str]] = {}
    for key in (*_MONTHS, *_DAYS, *_OTHERS):
        for name in single(key):
            taken.setdefault(name, set()).add(key)
    months = {name: number for number, key in enumerate(_MONTHS, 1) for name in single(key) if taken[name] == {key}}
    days = frozenset(name for key in _DAYS for name in single(key) if taken[name] == {key})
    january = sorted((name for name, number in months.items() if number == 1 and len(name) > 2), key=len)  # not `I`
    monday = sorted((name for name in single("monday") if name in days), key=len)
    if not january or not monday:
        return None
    return Names(months, days, (january[0], january[-1]), (monday[0], monday[-1]))


_AT = re.compile(
    r"(?<!\S)(?:saat|klo|kl\.?|jam|pukul|lúc|godz\.?|الساعة|ساعت|בשעה|เวลา)\s*(?=\d{1,2}[:.][0-5]\d(?!\d))", re.IGNORECASE
)
_CLOCK = re.compile(r"(?<![\w.,:/-])([01]?\d|2[0-3])(?:h|(?<=[^\W\d]\s\d)\.|(?<=[^\W\d]\s\d\d)\.)([0-5]\d)$", re.IGNORECASE)
_WORDS = {
    "ar": {
        "دقيقتين": "2 دقيقة", "ساعتين": "2 ساعة", "يومين": "2 يوم", "[أا]سبوعين": "2 أسبوع", "شهرين": "2 شهر",
        "سنتين|عامين": "2 سنة", "[أا]سابيع": "أسبوع", "[أا]شهر|شهور": "شهر", "سنوات|سنين|[أا]عوام": "سنة",
        "[أا]ول [أا]مس|[أا]مس ال[أا]ول": "قبل 2 يوم", r"(?:منذ|قبل) (?=(?:ثانية|دقيقة|ساعة|يوم|أسبوع|شهر|سنة|عام)\b)": "قبل 1 ",
    },
    "bg": {"завчера": "преди 2 дни"},
    "cs": {"dnem": "1 dnem"},
    "da": {"i forgårs": "2 dage siden"},
    "el": {"προχ[θτ][έε]ς": "πριν από 2 ημέρες", r"πριν(?= \d)": "πριν από"},
    "fa": {"پریروز": "2 روز پیش", "یک": "1", "دو": "2"},
    "fi": {"toissapäivänä": "2 päivää sitten"},
    "he": {
        "דקותיים": "2 דקות", "שעתיים": "2 שעות", "יומיים": "2 ימים", "שבועיים": "2 שבועות", "חודשיים": "2 חודשים",
        "שנתיים": "2 שנים", r"לפני כ?(?=(?:דקה|שעה|יום|שבוע|חודש|שנה)\b)": "לפני 1 ",
    },
    "id": {r"se(?=(?:menit|jam)\b)": "1 "},
    "it": {r"un['’](?=\w)|un[oa]? (?=\w)": "1 "},
    "nb": {"i forgårs": "2 dager siden"},
    "nl": {"een": "1"},
    "pl": {"pół godziny": "30 minut"},
    "ro": {"alaltăieri": "acum 2 zile", "acum (?:o|un)": "acum 1"},
    "sl": {"predvčerajšnjim": "pred 2 dnevi"},
    "sv": {"i förrgår": "2 dagar sedan"},
    "th": {r"(?<=[\d ])(?:ชั่วโมง|ชม\.?)\s?": "ชั่วโมง ", "ก่อน|ที่ผ่านมา": "ที่แล้ว"},
    "tr": {"(?:evvelsi|önceki) gün": "2 gün önce"},
    "vi": {"hôm kia": "2 ngày trước", "một": "1"},
}  # fmt: skip
_WHOLE = r"(?<!\w)(?:{})(?:(?!\w)|(?<=\s))"
_WITHIN = frozenset({"id", "it", "th"})  # languages in which a word above is a part of a longer one


def in_known_words(text: str, language: str | None) -> str:
    """Return the text in words and signs that dateparser reads; most texts are unchanged. Digits are ASCII's."""
    text = _CLOCK.sub(r"\1:\2", _AT.sub("", text))
    for pattern, known in _words((language or "").partition("-")[0]):
        text = pattern.sub(known, text)
    return text


@lru_cache(maxsize=64)
def _words(language: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the replacements of a language; where none is given, of those with another alphabet than Latin and Cyrillic."""
    names = [language] if language else ["ar", "el", "fa", "he", "th"]
    words = [(name, *pair) for name in names for pair in _WORDS.get(name, {}).items()]
    return tuple(
        (re.compile(text if name in _WITHIN else _WHOLE.format(text), re.IGNORECASE), known) for name, text, known in words
    )


_SECOND, _MINUTE, _HOUR, _ONE_DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

_UNIT_WORDS = {
    _SECOND: "s sec secs second seconds sek sekunde sekunden seconde secondes segundo segundos secondo secondi секунда секунду "
    "секунды секунд сек secunde sekund sekundy sekunder saniye detik giây 秒 초",
    _MINUTE: "m min mins minute minutes minuten minuto minutos minuti минута минуту минуты минут мин minut minuty minutter "
    "minuuttia dakika menit phút хвилин хвилину хвилини 分 분",
    _HOUR: "h hr hrs hour hours stunde stunden std heure heures hora horas ora ore uur uren час часа часов ч godzina godzinę "
    "godziny godzin hodin hodinami timme timmar timer tuntia saat jam giờ години годину годин 小时 小時 時間 시간",
    _ONE_DAY: "d day days tag tage tagen jour jours día dias dia días giorno giorni dag dagen dagar dage день дня дней дн "
    "dzień dni dny dnem zile päivää gün hari ngày дні днів ημέρες 天 日 일",
    7
    * _ONE_DAY: "w wk wks week weeks woche wochen semaine semaines semana semanas settimana settimane weken неделя неделю недели "
    "недель tydzień tygodnie tygodni týdny vecka veckor uger uker viikkoa hafta minggu tuần тиждень тижні тижнів 周 週 星期 주",
    30 * _ONE_DAY: "mo mos month months monat monate monaten mois mes meses mês mese mesi maand maanden месяц месяца месяцев мес "
    "miesiąc miesiące miesięcy měsíci måned måneder månad månader kuukautta ay bulan tháng місяць місяці місяців 月 ヶ月 か月 "
    "개월",
    365.25
    * _ONE_DAY: "y yr yrs year years jahr jahre jahren an ans año años ano anos anno anni jaar год года лет rok lata lat roky år "
    "vuotta yıl tahun năm рік роки років 年 년",
}
UNITS = {word: unit for unit, words in _UNIT_WORDS.items() for word in words.split()}
"""Duration of each unit, by its name."""

NUMBERS = dict.fromkeys(
    [
        "a",
        "an",
        "one",
        "ein",
        "eine",
        "einem",
        "einer",
        "einen",
        "un",
        "une",
        "una",
        "uno",
        "um",
        "uma",
        "een",
        "en",
        "ett",
        "один",
        "одну",
        "одна",
        "jeden",
        "jedną",
        "eden",
        "egy",
        "bir",
    ],
    1.0,
) | {"couple": 2.0, "zwei": 2.0, "two": 2.0, "dva": 2.0}

_DAY_WORDS = {
    0: "today heute aujourd'hui aujourd’hui hoy hoje oggi vandaag сегодня dziś dzisiaj dnes idag i dag tänään bugün ma hari ini "
    "сьогодні σήμερα 今天 今日 오늘",
    1: "yesterday gestern hier à hier, ayer ontem ieri gisteren вчера wczoraj včera igår i går eilen dün tegnap kemarin "
    "вчора χθες "
    "昨天 昨日 昨晚 어제",
    2: "vorgestern avant-hier anteayer позавчера przedwczoraj 前天 一昨日 그저께",
}
_PHRASES = {0: ("i dag", "hari ini", "hôm nay"), 1: ("i går", "hôm qua", "hier à", "hier,", "hier ", "dün")}
_ONLY_IN_PHRASES = frozenset({"i", "à", "ma", "hier", "hier,", "hari", "ini", "dag", "går", "dün"})
_BY_DAYS = [
    (word, days)
    for days, words in _DAY_WORDS.items()
    for word in (*(one for one in words.split() if one not in _ONLY_IN_PHRASES), *_PHRASES.get(days, ()))
]
DAYS_BACK: dict[str, int] = dict(sorted(_BY_DAYS, key=lambda pair: -len(pair[0])))
"""Words of days before today, the longest first."""

LESS_THAN_ONE = (
    "just now", "moments ago", "a moment ago", "gerade eben", "à l'instant", "только что", "przed chwilą",
    "刚刚", "剛剛", "たった今", "방금",
)  # fmt: skip

_WEEKDAY_WORDS = (
    "monday mon montag mo lundi lun lunes lunedì segunda maandag ma понедельник пн poniedziałek",
    "tuesday tue tues dienstag di mardi martes martedì terça dinsdag вторник вт wtorek",
    "wednesday wed mittwoch mi mercredi miércoles mercoledì quarta woensdag среда ср środa",
    "thursday thu thur thurs donnerstag do jeudi jueves giovedì quinta donderdag четверг чт czwartek",
    "friday fri freitag fr vendredi viernes venerdì sexta vrijdag пятница пт piątek",
    "saturday sat samstag sonnabend sa samedi sábado sabato zaterdag суббота сб sobota",
    "sunday sun sonntag so dimanche domingo domenica zondag воскресенье вс niedziela",
)
WEEKDAYS = {word: number for number, words in enumerate(_WEEKDAY_WORDS) for word in words.split()}
"""Monday is 0."""


_NAMES = (
    "jan january januar jänner janv janvier ene enero gen gennaio janeiro januari tammi tammik tammikuu tammikuuta "
    "tammikuussa sty styczeń stycznia styczen styczniu led leden ledna lednu január januára ian ianuarie яну януари янв "
    "январь января січ січень січня sij siječanj siječnja siječnju siječnjem јан јануар ιαν ιανουάριος ιανουαρίου oca "
    "ocak djan djanuari jaan jaanuar janvāris saus sausio sausis gener urt urtarrila xan xaneiro janúar ינואר לינואר "
    "בינואר ינו يناير جانفي ژانویه جنوری มกราคม มกรา",
    "feb february februar feber févr février fév febrero febbraio fev fevereiro februari helmi helmik helmikuu helmikuuta "
    "helmikuussa lut lutego luty lutym úno únor února únr únoru február februára febr februarie фев февруари февр февраль "
    "февраля лют лютий лютого velj veljača veljače veljači veljačom феб фебруар φεβ φεβρουάριος φεβρουαρίου şub şubat peb "
    "pebruari veebr veebruar februāris vas vasario vasaris febrer ots otsaila febreiro febrúar פברואר בפברואר לפברואר פבר "
    "فبراير شباط فيفري فوریه فبروری",
    "mar march mär märz mrz mars marzo março maart mrt marts maalis maalisk maaliskuu maaliskuuta maaliskuussa marca "
    "marzec marcu bře březen března březnu marec márc március már martie mart март мар марта бер березень березня берез "
    "ožu ožujak ožujka ožujku ožujkom μάρ μάρτιος μαρ μαρτίου maret mac märts kov kovas kovo març martxoa מרץ במרץ למרץ "
    "מרס במרס למרס מארס במארס למארס مارس آذار اذار مارچ",
    "apr april avr avril abr abril aprile huhti huhtik huhtikuu huhtikuuta huhtikuussa kwi kwiecień kwietnia kwiecien "
    "kwietniu kwie dub duben dubna dubnu apríl apríla ápr április aprilie апр април апрель апреля квіт квітень квітня кві "
    "tra travanj travnja travnju travnjem απρ απρίλιος απριλίου nis nisan aprill aprīlis bal balandis balandžio api "
    "apirila אפריל באפריל לאפריל אפר أبريل نيسان أفريل افريل آوریل اپریل เมย เมษายน เมษา",
    "may mai mayo mag maggio maio mei maj touko toukok toukokuu toukokuuta toukokuussa maja maju kvě květen května květnu "
    "máj mája május май мая трав травень травня тра svi svibanj svibnja svibnju svibnjem мај μάι μάιος μαΐ μαΐου mayıs "
    "maijs geg gegužė gegužės maig maiatza maí מאי במאי למאי مايو أيار ايار ماي พฤษภาคม พฤษภา",
    "jun june juni juin junio giu giugno junho kesä kesäk kesäkuu kesäkuuta kesäkuussa cze czerwca czerwiec czerwcu "
    "červen června čvn čer červnu jún júna június iun iunie юни июн июнь июня черв червень червня чер lipanj lipnja "
    "lipnju lipnjem јун junij ιουν ιουνίου ιούν ιούνιος haz haziran djuni juuni jūn jūnijs birž birželio birželis juny "
    "eka ekaina xuño júní יוני ביוני ליוני יונ يونيو حزيران جوان يونيه يونية ژوئن جون",
    "jul july juli juil juillet julio lug luglio julho heinä heinäk heinäkuu heinäkuuta heinäkuussa lip lipca lipiec "
    "lipcu července červenec čvc črc červenci črv júl júla július iul iulie юли июл июль июля лип липень липня srpanj "
    "srpnja srpnju srpnjem јул julij ιουλ ιουλίου ιούλ ιούλιος tem temmuz djuli julai juuli jūl jūlijs liep liepa liepos "
    "juliol uzt uztaila xul xullo júlí יולי ביולי ליולי יול يوليو تموز جويلية يوليه يولية ژوئیه جولای กรกฎาคม กรกฎา",
    "aug august août aoû ago agosto augustus augusti elo elok elokuu elokuuta elokuussa sie sierpień sierpnia sierpien "
    "sierpniu srp srpen srpna srpnu augusta augusztus авг август августа серп серпень серпня сер kol kolovoz kolovoza "
    "kolovozu kolovozom avg avgust αυγ αυγούστου αύγ αύγουστος ağu ağustos agu agustus agt ogo ogos augusts rugp "
    "rugpjūtis rugpjūčio agost abu abuztua ágú ágúst אוגוסט באוגוסט לאוגוסט אוג أغسطس آب أوت اوت آگست",
    "sep september sept septembre septiembre setiembre set settembre setembro septembro syys syysk syyskuu syyskuuta "
    "syyskuussa wrz wrzesień września wrzesien wrzesnia wrześniu wrzesniu zář září septembra szept szeptember septembrie "
    "сеп септември септ септм сент сентябрь сентября сен вер вересень вересня верес ruj rujan rujna rujnu rujnom "
    "септембар σεπ σεπτέμβριος σεπτεμβρίου eyl eylül septembris rugs rugsėjis rugsėjo setembre ira iraila ספטמבר בספטמבר "
    "לספטמבר ספט سبتمبر أيلول ايلول سپتامبر سپتمبر",
    "oct october okt oktober octobre octubre ott ottobre out outubro loka lokak lokakuu lokakuuta lokakuussa paź "
    "październik października pazdziernik pazdziernika październiku pazdzierniku paz říj říjen října říjnu október "
    "októbra octombrie окт октомври октябрь октября жовт жовтень жовтня жов listopadom октобар οκτ οκτωβρίου οκτώβριος "
    "eki ekim oktoober oktobris spal spalio spalis urr urria אוקטובר באוקטובר לאוקטובר אוק أكتوبر اکتبر اکتوبر",
    "nov november novembre noviembre novembro marras marrask marraskuu marraskuuta marraskuussa lis listopad listopada "
    "listopadzie listopadu novembra noiembrie noiem ное ноември нояб ноябрь ноября ноя лист листопад листопада листоп лис "
    "stu studeni studenoga studenom studenomu studenome studenog studenim нов новембар νοέ νοέμβριος νοε νοεμβρίου kas "
    "kasım nop nopember novembris lapkr lapkritis lapkričio aza azaroa nóv nóvember נובמבר בנובמבר לנובמבר נוב نوفمبر "
    "نوامبر نومبر",
    "dec december dez dezember déc décembre dic diciembre dicembre dezembro des desember joulu jouluk joulukuu joulukuuta "
    "joulukuussa gru grudnia grudzień grudzien grudniu pro prosince prosinec prosinci decembra decembrie дек декември "
    "декабрь декабря груд грудень грудня гру prosinac prosinca prosincu prosincem дец децембар δεκ δεκέμβριος δεκεμβρίου "
    "ara aralık dis disember dets detsember decembris gruod gruodis gruodžio desembre abe abendua decembro דצמבר בדצמבר "
    "לדצמבר דצמ ديسمبر دسامبر دسمبر",
)

MONTHS: dict[str, int] = {name: number for number, names in enumerate(_NAMES, 1) for name in names.split()}
