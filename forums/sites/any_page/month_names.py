"""Names of the months as forums write them, in 37 languages: the month's number by the lower-case name.

A name that means different months in two languages (`listopad`) has the meaning of the language with more speakers.
"""

from __future__ import annotations

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
